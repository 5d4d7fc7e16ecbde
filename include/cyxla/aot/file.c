/* Constants in a file, which is mapped into memory and stays there. */
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime.h"

#define HEAD_BYTES 64

static const char *loaded;

const char *CYX_AOT(constants)(void) { return __atomic_load_n(&loaded, __ATOMIC_ACQUIRE); }

/* CYX_AOT_HEAD are the first bytes of the file, with the digest of the rest, CYX_AOT_BYTES its size. */
int32_t CYX_AOT(load)(const char *path) {
  static const unsigned char head[HEAD_BYTES] = {CYX_AOT_HEAD};
  const int file = open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0) return 5;
  struct stat facts;
  if (fstat(file, &facts) || facts.st_size != HEAD_BYTES + CYX_AOT_BYTES) {
    close(file);
    return CYX_DATA_LOSS;
  }
  char *data = mmap(NULL, (size_t)facts.st_size, PROT_READ, MAP_PRIVATE, file, 0);
  close(file);
  if (data == MAP_FAILED) return CYX_RESOURCE_EXHAUSTED;
  const char *none = NULL;
  if (memcmp(data, head, HEAD_BYTES)) {
    munmap(data, (size_t)facts.st_size);
    return CYX_DATA_LOSS;
  }
  if (!__atomic_compare_exchange_n(&loaded, &none, data + HEAD_BYTES, 0, __ATOMIC_RELEASE, __ATOMIC_RELAXED))
    munmap(data, (size_t)facts.st_size); /* loaded before */
  return CYX_OK;
}
