"""Programs for several devices: refused on one, unless they are the same on each."""

import threading

import numpy as np
import pytest

import cyxla
from cyxla.errors import InvalidArgumentError, UnimplementedError
from cyxla.xla.evaluator import Options, evaluate

ADD = "add { a = f32[] parameter(0) b = f32[] parameter(1) ROOT s = f32[] add(a, b) }\n"
ONES = np.ones(4, np.float32)


def program(body, header=""):
    return f"HloModule m{header}\n{ADD}ENTRY main {{ x = f32[4] parameter(0) {body} }}"


DEPENDENT = {
    "all-reduce": "ROOT r = f32[4] all-reduce(x), replica_groups={}, to_apply=add",
    "all-gather": "ROOT r = f32[8] all-gather(x), replica_groups={{0,1}}, dimensions={0}",
    "collective-permute": "ROOT r = f32[4] collective-permute(x), source_target_pairs={{0,1},{1,0}}",
    "replica-id": "i = u32[] replica-id() f = f32[] convert(i) b = f32[4] broadcast(f), dimensions={} "
    "ROOT r = add(x, b)",
    "partition-id": "i = u32[] partition-id() f = f32[] convert(i) b = f32[4] broadcast(f), dimensions={} "
    "ROOT r = add(x, b)",
    "all-reduce-start": "s = f32[4] all-reduce-start(x), replica_groups={{0,1}}, to_apply=add "
    "ROOT r = f32[4] all-reduce-done(s)",
}


@pytest.mark.parametrize("header", [", replica_count=2", ", num_partitions=2"])
@pytest.mark.parametrize("name", DEPENDENT)
def test_several_devices_do_not_run_as_one(name, header, backend):
    with pytest.raises(UnimplementedError, match=f"{name} in a program for several devices") as caught:
        cyxla.compile(program(DEPENDENT[name], header), platform=backend)
    assert "rendezvous" in caught.value.hint
    with pytest.raises(UnimplementedError, match="several devices"):
        evaluate(cyxla.hlo.parse_module(program(DEPENDENT[name], header)), [ONES])


def test_several_devices_from_stablehlo(backend):
    text = """module attributes {mhlo.num_replicas = 2 : i32} { func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
      %0 = "stablehlo.all_reduce"(%x) <{replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>}> ({
        ^bb0(%a: tensor<f32>, %b: tensor<f32>): %s = stablehlo.add %a, %b : tensor<f32>
        stablehlo.return %s : tensor<f32> }) : (tensor<4xf32>) -> tensor<4xf32>
      return %0 : tensor<4xf32> } }"""
    with pytest.raises(UnimplementedError, match="several devices"):
        cyxla.compile(text, platform=backend)


@pytest.mark.parametrize("body, highest", [
    ("ROOT r = f32[4] all-reduce(x), replica_groups={{0,1}}, to_apply=add", 1),
    ("ROOT r = f32[4] all-reduce(x), replica_groups=[2,4]<=[8], to_apply=add", 7),
    ("ROOT r = f32[4] collective-permute(x), source_target_pairs={{0,3}}", 3),
])  # fmt: skip
def test_devices_that_do_not_exist(body, highest, backend):
    with pytest.raises(InvalidArgumentError, match=f"names device {highest}; this run has 1"):
        cyxla.compile(program(body), platform=backend)


@pytest.mark.parametrize("header", ["", ", replica_count=8, num_partitions=2"])
def test_programs_that_are_the_same_on_each_device_run(header, backend):
    double = cyxla.compile(program("ROOT r = add(x, x)", header), platform=backend)
    np.testing.assert_array_equal(double(ONES), 2 * ONES)


def test_the_way_that_the_hint_names():
    module = cyxla.hlo.parse_module(program(DEPENDENT["all-reduce"], ", replica_count=2"))
    seen, everybody = {}, threading.Barrier(2, timeout=60)
    results = [None, None]

    def run(device):
        def rendezvous(ins, devices, operands):
            seen[device] = operands
            everybody.wait()
            return [seen[d] for d in devices]

        results[device] = evaluate(
            module, [ONES * (device + 1)], options=Options(replica_count=2, replica=device, rendezvous=rendezvous)
        )

    threads = [threading.Thread(target=run, args=(device,)) for device in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    np.testing.assert_array_equal(results, [3 * ONES, 3 * ONES])
