/* A product of matrices, or of batches of them, in tiles: a kernel.
 *
 * The result is cut into panels of columns and ranges of tiles of rows. A unit of work is a range of tiles of some
 * panels, over the whole contracted dimension, one block of it after the other. A panel of the right operand is read in
 * place, or packed first: its columns side by side, with zeros after the last one.
 *
 * A template: define the parameters and include it, any number of times; it undefines them.
 *   DOT_PREFIX           prefix of all names; the entry point is `prefix_run(numbers, bufs, begin, end, after)`. The
 *                        types of dot_tile.h, `prefix_tile_function`, `prefix_after_function` and the struct
 *                        `prefix_numbers` precede this text
 *   DOT_ELEMENT          C type of an element
 *   DOT_LANES            elements of a vector
 *   DOT_CONSTANT         1 if the numbers are the constants `prefix_constants`, which precede this text; 0 if they
 *                        arrive at run time
 *   DOT_UNITS            0 if units are ranges of tiles of one panel, which needs constants; 1 if the numbers tell at
 *                        run time of how many
 *   DOT_TILES            table of tiles. With constants: those of a panel, then those of the last one, of `height` rows
 *                        and of one more. Else: by form (rows, columns, prefetching), vectors, and rows - 1
 *   DOT_MAX_TILE         elements of the largest tile; without constants
 *   DOT_PACK             0 if no panel is packed; 1 if columns of those that are packed are adjacent in memory; 2 if
 *                        their strides are any
 *   DOT_TRANSPOSE        function that packs a panel whose rows are adjacent, cyx_tile_4 or cyx_tile_8; for DOT_PACK 2
 *   DOT_PACKED_ELEMENTS  elements of packed panels; with constants
 *   DOT_SUM_ELEMENTS     elements of sums on the stack of a task; with constants
 *   DOT_LIVE             1 if a leading part of the product alone matters: `prefix_live_batch`, `prefix_live_rows` and
 *                        `prefix_live_columns`, of which each takes `bufs`, precede this text; 2 if sums stop, too, at
 *                        `prefix_live_depth`, and tiles take the size of a block at run time; for DOT_UNITS 0
 *
 * With an epilogue, `after` has its function for a panel and for the last one. It takes the sums of a tile, or those of
 * a unit after all blocks.
 */
#include "../../abi.h"
#include "../../compiler.h"

#define DOT(name) CYX_JOIN(DOT_PREFIX, name)
#define DOT_E DOT(e)
#define DOT_N DOT(numbers)
#define DOT_TILE DOT(tile)
#define DOT_TILE_F DOT(tile_function)
#define DOT_AFTER_F DOT(after_function)
#if DOT_CONSTANT
#define DOT_USE_CONSTANTS(s) s = &DOT(constants);
#else
#define DOT_USE_CONSTANTS(s)
#endif

#if !DOT_CONSTANT
/* Store the sums of a tile, or add them, without its columns beyond the panel. */
static __attribute__((noinline)) void DOT(move)(DOT_E *restrict to, int64_t out_stride, const DOT_ELEMENT *from,
                                                int64_t width, int64_t rows, int64_t columns, int64_t adds) {
  for (int64_t r = 0; r < rows; ++r, to += out_stride, from += width) {
    if (adds)
      for (int64_t n = 0; n < columns; ++n) to[n] += from[n];
    else
      for (int64_t n = 0; n < columns; ++n) to[n] = from[n];
  }
}
#endif

#if DOT_PACK
static inline __attribute__((always_inline)) void DOT(pack_columns)(const DOT_N *s, const DOT_E *restrict b,
                                                                    DOT_E *restrict to, int64_t count,
                                                                    const int64_t columns) {
  const int64_t width = s->width;
#if DOT_CONSTANT
  if (columns < width && s->right_column_stride == 1) {
    for (int64_t k = 0; k < count; ++k, b += s->right_k_stride, to += width) {
      __builtin_memcpy(to, b, (unsigned long)columns * sizeof *to);
      __builtin_memset(to + columns, 0, (unsigned long)(width - columns) * sizeof *to);
    }
    return;
  }
#endif
  if (columns < width)
    for (int64_t k = 0; k < count; ++k)
      for (int64_t n = columns; n < width; ++n) to[k * width + n] = 0;
  if (s->right_column_stride == 1) {
    const int64_t whole = columns / DOT_LANES * DOT_LANES;
    for (int64_t k = 0; k < count; ++k, b += s->right_k_stride, to += width) {
      for (int64_t n = 0; n < whole; n += DOT_LANES) {
        __builtin_prefetch((const char *)(b + 16 * s->right_k_stride + n));
        *(DOT(v) *)(to + n) = *(const DOT(u) *)(b + n);
      }
      for (int64_t n = whole; n < columns; ++n) to[n] = b[n];
    }
  }
#if DOT_PACK == 2
  else if (s->right_k_stride == 1) {
    DOT_TRANSPOSE(to, width, b, s->right_column_stride, count, columns);
  } else {
    for (int64_t k = 0; k < count; ++k)
      for (int64_t n = 0; n < columns; ++n) to[k * width + n] = b[k * s->right_k_stride + n * s->right_column_stride];
  }
#endif
}

/* Pack a block of k of a panel of the right operand. */
static __attribute__((noinline)) void DOT(pack)(const DOT_N *s, const DOT_E *restrict b, DOT_E *restrict to,
                                                int64_t count, int64_t columns) {
  DOT_USE_CONSTANTS(s)
#if DOT_CONSTANT
  if (s->panels > 1 && s->packs && columns == s->width)
    DOT(pack_columns)(s, b, to, count, s->width);
  else
    DOT(pack_columns)(s, b, to, count, s->last);
#else
  DOT(pack_columns)(s, b, to, count, columns);
#endif
}
#endif

/* First row of a tile. */
static inline int64_t DOT(row_of)(const DOT_N *s, int64_t tile) {
  return tile * s->height + (tile < s->tall_tiles ? tile : s->tall_tiles);
}

/* Number of tiles that begin in the first rows. */
static inline int64_t DOT(tiles_of_rows)(const DOT_N *s, int64_t rows) {
  DOT_USE_CONSTANTS(s)
  const int64_t tall = s->height + 1, others = rows - s->tall_tiles * tall;
  return others > 0 ? s->tall_tiles + (others + s->height - 1) / s->height : (rows + tall - 1) / tall;
}

/* Number of tiles to compute of a panel: those of a symmetric product that reach above the diagonal. */
static inline int64_t DOT(tiles_of_panel)(const DOT_N *s, int64_t panel) {
  DOT_USE_CONSTANTS(s)
  const int64_t rows = (panel + 1) * s->width;
  return s->symmetric && rows < s->m ? DOT(tiles_of_rows)(s, rows) : s->tiles;
}

/* Copy blocks of rows of symmetric products from above the diagonals to below them. */
static __attribute__((noinline)) void DOT(mirror)(const DOT_N *s, void *const *bufs, int64_t begin, int64_t end) {
  DOT_USE_CONSTANTS(s)
  const int64_t size = 16, blocks = (s->m + size - 1) / size;
  for (int64_t u = begin; u < end; ++u) {
    DOT_E *const out = (DOT_E *)bufs[s->out] + u / blocks * s->m * s->m;
    const int64_t row = u % blocks * size, stop = row + size < s->m ? row + size : s->m;
    for (int64_t column = 0; column <= row; column += size)
      for (int64_t r = row; r < stop; ++r) {
        const int64_t last = column + size < r ? column + size : r;
        for (int64_t c = column; c < last; ++c) out[r * s->m + c] = out[c * s->m + r];
      }
  }
}

#if DOT_LIVE
/* Number of tiles that reach into the live rows. */
static inline int64_t DOT(live_tiles)(const DOT_N *s, void *const *bufs) {
  return DOT(tiles_of_rows)(s, DOT(live_rows)(bufs));
}

/* Number of ranges that the live tiles of a panel are cut into. */
static inline int64_t DOT(live_ranges)(const DOT_N *s, void *const *bufs) {
  DOT_USE_CONSTANTS(s)
  const int64_t tiles = DOT(live_tiles)(s, bufs);
  return tiles < s->ranges ? tiles : s->ranges;
}

/* Number of panels that reach into the live columns. */
static inline int64_t DOT(live_panels)(const DOT_N *s, void *const *bufs) {
  DOT_USE_CONSTANTS(s)
  return (DOT(live_columns)(bufs) + s->width - 1) / s->width;
}
#endif

#if DOT_UNITS == 0
/* Compute a range of tiles of a panel, one block of k after the other. */
static inline void DOT(unit)(const DOT_N *s, void *const *bufs, DOT_ELEMENT *store, DOT_ELEMENT *sums, int64_t u,
                             const DOT_AFTER_F *after) {
  DOT_USE_CONSTANTS(s)
#if DOT_LIVE
  const int64_t panels = DOT(live_panels)(s, bufs), tiles = DOT(live_tiles)(s, bufs), rows = DOT(live_rows)(bufs);
  const int64_t ranges = DOT(live_ranges)(s, bufs);
  const int64_t range = u % ranges, panel = u / ranges % panels, batch = u / (ranges * panels);
#if DOT_LIVE == 2
  const int64_t last = panel == s->panels - 1, blocked = 1, depth = DOT(live_depth)(bufs);
#else
  const int64_t last = panel == s->panels - 1, blocked = s->k_block < s->k, depth = s->k;
#endif
  const int64_t from = range * tiles / ranges, to = (range + 1) * tiles / ranges;
#else
  const int64_t range = u % s->ranges, panel = u / s->ranges % s->panels, batch = u / (s->ranges * s->panels);
  const int64_t last = panel == s->panels - 1, blocked = s->k_block < s->k;
  const int64_t tiles = DOT(tiles_of_panel)(s, panel);
  const int64_t from = range * tiles / s->ranges, to = (range + 1) * tiles / s->ranges;
#endif
  const int64_t row = batch * s->m + DOT(row_of)(s, from), column = panel * s->width;
  const DOT_E *const left = (const DOT_E *)bufs[s->left] + batch * s->left_batch_stride;
  const DOT_E *const right = (const DOT_E *)bufs[s->right] + batch * s->right_batch_stride + panel * s->panel_stride;
  DOT_E *const out = s->epilogue ? (DOT_E *)sums - row * s->out_stride : (DOT_E *)bufs[s->out] + column;
  int64_t k = 0;
  do {
#if DOT_LIVE
    const int64_t count = blocked && depth - k < s->k_block ? depth - k : s->k_block;
#else
    const int64_t count = blocked && s->k - k < s->k_block ? s->k - k : s->k_block;
#endif
    const DOT_TILE block = {
        .count = count, .adds = k > 0, .prefetch_tile = s->prefetch_tile * (s->prefetch == 1 ? 1 : count)};
    const DOT_E *b = right + k * s->right_k_stride;
    const char *prefetched =
        s->prefetch ? (const char *)(s->prefetch == 3 ? b + count * s->width : right + s->prefetch_start) : 0;
#if DOT_PACK
    if (last ? s->packs_last : s->packs) {
      DOT(pack)(s, b, store, count, last ? s->last : s->width);
      b = store;
    }
#endif
    for (int64_t t = from; t < to; ++t) {
      const int64_t first = DOT(row_of)(s, t), tall = t < s->tall_tiles;
      DOT_E *const target = s->epilogue == 1 ? (DOT_E *)sums : out + (batch * s->m + first) * s->out_stride;
      DOT_TILES[last][tall](blocked ? &block : 0, left + first * s->left_row_stride + k * s->left_k_stride, b, target,
                            prefetched, 1);
#if DOT_LIVE
      const int64_t height = first + s->height + tall < rows ? s->height + tall : rows - first;
      if (s->epilogue == 1) after[last](bufs, batch * s->m + first, column, height, sums, s->width);
#else
      if (s->epilogue == 1) after[last](bufs, batch * s->m + first, column, s->height + tall, sums, s->width);
#endif
      if (s->prefetch) prefetched += block.prefetch_tile;
    }
    k += s->k_block;
#if DOT_LIVE
  } while (blocked && k < depth);
#else
  } while (blocked && k < s->k);
#endif
#if DOT_LIVE
  const int64_t end = DOT(row_of)(s, to) < rows ? DOT(row_of)(s, to) : rows;
  if (s->epilogue == 2) after[last](bufs, row, column, batch * s->m + end - row, sums, s->out_stride);
#else
  if (s->epilogue == 2) after[last](bufs, row, column, batch * s->m + DOT(row_of)(s, to) - row, sums, s->out_stride);
#endif
  (void)store, (void)sums, (void)after;
}
#else
/* Return the panels from `first` to `stop`, packed if they are to be, and set the step from one to the next. */
static inline const DOT_E *DOT(packed)(const DOT_N *s, const DOT_E *b, DOT_ELEMENT *store, int64_t count, int64_t first,
                                       int64_t stop, int64_t *step) {
  DOT_USE_CONSTANTS(s)
  *step = s->panel_stride;
#if DOT_PACK
  if (stop == s->panels ? s->packs_last : s->packs) {
    const int64_t size = s->k_block * s->width;
    for (int64_t p = first; p < stop; ++p)
      DOT(pack)(s, b + (p - first) * *step, store + (p - first) * size, count, p == s->panels - 1 ? s->last : s->width);
    *step = size;
    return store;
  }
#endif
  (void)store, (void)count, (void)first, (void)stop;
  return b;
}

/* Compute the tiles of a panel from one to another, the taller ones first. An epilogue takes each of them. */
static void DOT(panel)(const DOT_N *s, DOT_TILE *block, void *const *bufs, int64_t batch, int64_t panel,
                       const DOT_E *left, const DOT_E *right, DOT_E *result, int64_t from, int64_t to,
                       const char *prefetched, const DOT_AFTER_F *after) {
  const int64_t last = panel == s->panels - 1;
  const int64_t form = s->left_k_stride != 1 ? 1 : prefetched ? 2 : 0;
  const DOT_TILE_F *const of_height = DOT_TILES[form][(last ? s->last_vectors : s->vectors) - 1] + s->height - 1;
  const int64_t cut = (last && s->last % DOT_LANES) || s->epilogue, adds = block->adds;
  DOT_ELEMENT spill[DOT_MAX_TILE] __attribute__((aligned(64)));
  block->right_stride = (last ? s->packs_last : s->packs) ? s->width : s->right_k_stride;
  block->out_stride = cut ? s->width : s->out_stride;
  block->adds = adds && !cut;
  block->prefetch_tile = s->prefetch_tile * (s->prefetch == 1 ? 1 : block->count);
  for (int64_t t = from; t < to;) {
    const int64_t tall = t < s->tall_tiles, row = DOT(row_of)(s, t);
    const int64_t tiles = cut ? 1 : (tall && s->tall_tiles < to ? s->tall_tiles : to) - t;
    DOT_E *const target = result + row * s->out_stride;
    of_height[tall](block, left + row * s->left_row_stride, right, cut ? (DOT_E *)spill : target, prefetched, tiles);
    if (s->epilogue) {
      const int64_t height = s->height + tall, rest = s->live_rows - row;
      after[last && s->last < s->width](bufs, batch * s->m + row, panel * s->width, height < rest ? height : rest,
                                        spill, s->width);
    } else if (cut) {
      DOT(move)(target, s->out_stride, spill, s->width, s->height + tall, s->last, adds);
    }
    if (prefetched) prefetched += tiles * block->prefetch_tile;
    t += tiles;
  }
  block->adds = adds;
}

/* Compute some panels side by side, for a range of tiles: a strip of tiles goes past all panels before the next. */
static void DOT(unit)(const DOT_N *s, DOT_TILE *block, void *const *bufs, DOT_ELEMENT *store, int64_t u,
                      const DOT_AFTER_F *after) {
  const int64_t early = s->units - s->tail_groups * s->tail_ranges, before = u < early ? 0 : early;
  const int64_t ranges = before ? s->tail_ranges : s->ranges, range = (u - before) % ranges;
  const int64_t group = before / s->ranges + (u - before) / ranges;
  const int64_t groups = (s->panels + s->group_panels - 1) / s->group_panels;
  const int64_t start = group % groups * s->group_panels, batch = group / groups;
  const int64_t stop = start + s->group_panels < s->panels ? start + s->group_panels : s->panels;
  const int64_t tiles = DOT(tiles_of_panel)(s, stop - 1);
  const int64_t from = range * tiles / ranges, to = (range + 1) * tiles / ranges;
  const DOT_E *const left = (const DOT_E *)bufs[s->left] + batch * s->left_batch_stride;
  const DOT_E *const right = (const DOT_E *)bufs[s->right] + batch * s->right_batch_stride + start * s->panel_stride;
  DOT_E *const result = (DOT_E *)bufs[s->out] + batch * s->m * s->n + start * s->width;
  int64_t k = 0, step;
  do {
    const int64_t count = s->k - k < s->k_block ? s->k - k : s->k_block;
    const DOT_E *b = right + k * s->right_k_stride;
    const char *prefetched =
        s->prefetch ? (const char *)(s->prefetch == 3 ? b + count * s->width : right + s->prefetch_start) : 0;
    b = DOT(packed)(s, b, store, count, start, stop, &step);
    block->count = count;
    block->adds = k > 0;
    for (int64_t t = from; t < to; t += s->strip_tiles) {
      const int64_t end = t + s->strip_tiles < to ? t + s->strip_tiles : to;
      for (int64_t p = 0; p < stop - start; ++p) {
        const int64_t needed = DOT(tiles_of_panel)(s, start + p), last = end < needed ? end : needed;
        DOT(panel)
        (s, block, bufs, batch, start + p, left + k * s->left_k_stride, b + p * step, result + p * s->width, t, last,
         prefetched, after);
      }
    }
    k += s->k_block;
  } while (k < s->k);
}
#endif

/* Run tasks. Always inlined, since gcc compiles a function with large arrays apart from its only caller. */
static inline __attribute__((always_inline)) cyx_status DOT(run)(const DOT_N *s, void *const *bufs, int64_t begin,
                                                                 int64_t end, const DOT_AFTER_F *after) {
  DOT_USE_CONSTANTS(s)
  if (s->symmetric && *(const int64_t *)bufs[s->symmetric]) {
    DOT(mirror)(s, bufs, begin * s->mirrored / s->tasks, end * s->mirrored / s->tasks);
    return CYX_OK;
  }
#if DOT_CONSTANT
  DOT_ELEMENT store[DOT_PACKED_ELEMENTS] __attribute__((aligned(64))),
      local[DOT_SUM_ELEMENTS] __attribute__((aligned(64)));
  DOT_ELEMENT *const sums = s->scratch ? (DOT_ELEMENT *)bufs[s->scratch] + begin * s->sums : local;
#else
  DOT_ELEMENT *store = 0, *const sums = 0;
  const unsigned long packed = (unsigned long)((s->k_block ? s->k_block : 1) * s->width * s->group_panels);
  if (s->packs || s->packs_last) store = __builtin_alloca_with_align(sizeof *store * packed, 512);
#endif
#if DOT_UNITS
  DOT_TILE block = {
      .left_row_stride = s->left_row_stride, .left_k_stride = s->left_k_stride, .prefetch_every = 0x7fffffffffffffff};
  if (s->prefetch)
    block.prefetch_every = s->prefetch_every, block.prefetch_lines = s->prefetch_lines,
    block.prefetch_stride = s->prefetch_stride;
#endif
#if DOT_LIVE
  const int64_t units = DOT(live_batch)(bufs) * DOT(live_panels)(s, bufs) * DOT(live_ranges)(s, bufs);
  const int64_t last = end * units / s->tasks;
  for (int64_t u = begin * units / s->tasks; u < last; ++u) {
#else
  const int64_t last = end * s->units / s->tasks;
  for (int64_t u = begin * s->units / s->tasks; u < last; ++u) {
#endif
#if DOT_UNITS
    DOT(unit)(s, &block, bufs, store, u, after);
    (void)sums;
#else
    DOT(unit)(s, bufs, store, sums, u, after);
#endif
  }
  return CYX_OK;
}

#undef DOT_USE_CONSTANTS
#undef DOT_PREFIX
#undef DOT_ELEMENT
#undef DOT_LANES
#undef DOT_CONSTANT
#undef DOT_TILES
#undef DOT_MAX_TILE
#undef DOT_UNITS
#undef DOT_PACK
#undef DOT_TRANSPOSE
#undef DOT_PACKED_ELEMENTS
#undef DOT_SUM_ELEMENTS
#undef DOT_LIVE
