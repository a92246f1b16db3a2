"""Every rule has nets that break it and nets that do not; nets that met the mapper are judged as it judged them."""

from __future__ import annotations

from pathlib import Path

import pytest

import onnx2caffe
from onnx2caffe.errors import UnreadableFile, UsageError
from onnx2caffe.targets.nnie.cfg import CFG_RULES
from onnx2caffe.targets.nnie.examine import examine
from onnx2caffe.targets.nnie.rules import SEVERITIES, Rule, load_rules
from tests.nnie import test_cfg, test_mapper_log
from tests.nnie.cases import BROKEN, CLEAN, CONV, custom, one
from tests.nnie.nets import layer, net, sites
from tests.verify.models import save

RULES = load_rules()
SHARED = Path(__file__).parents[3] / "shared" / "nnie_prototxt"
met = pytest.mark.skipif(not SHARED.is_dir(), reason="no ../shared/nnie_prototxt beside the repository")


def found(text: str, folder: Path, rules: dict[str, Rule] = RULES) -> set[str]:
    return {finding.rule for finding in examine(sites(text, folder), rules)}


def labelled(cases: list[tuple[str, str]]) -> list[str]:
    return [f"{rule}-{number}" for number, (rule, _) in enumerate(cases)]


@pytest.mark.parametrize(("rule", "text"), BROKEN, ids=labelled(BROKEN))
def test_a_net_that_breaks_the_rule(rule: str, text: str, tmp_path: Path):
    assert rule in found(text, tmp_path)


@pytest.mark.parametrize(("rule", "text"), CLEAN, ids=labelled(CLEAN))
def test_a_net_that_does_not(rule: str, text: str, tmp_path: Path):
    assert rule not in found(text, tmp_path)


def test_every_rule_has_both():
    about_logs = {id for id in RULES if id.startswith("M")}
    about_nets = {"W23"} | RULES.keys() - about_logs - CFG_RULES.keys()
    for broken, clean, wanted in (
        (BROKEN, CLEAN, about_nets),
        (test_cfg.BROKEN, test_cfg.CLEAN, {*CFG_RULES}),
        (test_mapper_log.MESSAGES, test_mapper_log.HARMLESS, about_logs),
    ):
        assert wanted <= {cell for row in broken for cell in row}
        assert wanted <= {cell for row in clean for cell in row}


@pytest.mark.parametrize("rule", RULES.values(), ids=RULES)
def test_a_rule_says_what_to_do_and_where_it_is_known_from(rule: Rule):
    assert rule.severity in SEVERITIES
    assert all((rule.title, rule.remedy, rule.source, rule.strength))


def prototxts(kind: str) -> list[Path]:
    return sorted((SHARED / kind).glob("*.prototxt"))


@met
@pytest.mark.parametrize("path", [*prototxts("compiled"), *prototxts("unproven")], ids=lambda p: p.stem)
def test_what_the_mapper_took_is_not_refused(path: Path):
    assert onnx2caffe.check(path).at_least("refused") == []


@met
@pytest.mark.parametrize(
    ("name", "rule", "layer"),
    [
        ("yolov5s_v4_deconv_640", "E01", "Transpose_217"),
        ("yolov5s_v4_deconv_640", "E02", "Reshape_216"),
        ("yolov5n_416_before_marking", "E01", "_model_24_Transpose_2"),
        ("yolov5n_416_before_marking", "E03", "_model_24_Reshape_2"),
        ("nanodet_320_raw", "E01", "Transpose_276"),
        ("nanodet_320_raw", "E02", "Reshape_283"),
        ("nanodet_320_raw", "E18", "Split_17"),
    ],
)
def test_what_the_mapper_refused_is_refused_where_it_did(name: str, rule: str, layer: str):
    path = SHARED / "refused" / f"{name}.prototxt"
    (finding,) = (f for f in onnx2caffe.check(path).at_least("refused") if (f.rule, f.layer) == (rule, layer))
    text = path.read_text().splitlines()
    assert f'name: "{layer}"' in "".join(text[finding.line - 1 : finding.line + 3])


@met
def test_outputs_that_became_one_name_are_found():
    report = onnx2caffe.check(SHARED / "compiled" / "retinaface_mnet_640.prototxt")
    assert [finding.rule for finding in report.at_least("wrong")] == ["W05", "W05"]


def test_caffes_own_refusal_is_said_once(tmp_path: Path):
    text = net(layer("Pooling", "pooling_param { kernel_size: 2 }"), layer("Eltwise", bottom="data,it", name="sum"))
    rules = [f.rule for f in examine(sites(text, tmp_path), RULES) if f.severity == "refused"]
    assert rules == ["E06"]


def test_what_follows_an_impossible_shape_is_not_blamed(tmp_path: Path):
    refused = [f for f in examine(sites(custom([1, 0, 4, 4]), tmp_path), RULES) if f.severity == "refused"]
    assert [(f.rule, f.layer, f.text) for f in refused] == [("E15", "it", "shape 1x0x4x4")]


def test_all_that_is_wrong_with_one_layer_is_found_with_its_line(tmp_path: Path):
    text = net(layer("Reshape", "reshape_param {\n shape { dim: 1 dim: 2 dim: 2 dim: 2 dim: 32 } }"))
    findings = [f for f in examine(sites(text, tmp_path), RULES) if f.severity == "refused"]
    assert [(f.rule, f.layer, f.line) for f in findings] == [("E02", "it", 2), ("E03", "it", 2)]


@pytest.mark.parametrize(
    ("text", "shapes"),
    [
        (layer("Slice", "slice_param { slice_point: 1 }", top="a,b_report,b"), {"b": 3, "b_report": 3}),
        (layer("ReLU", bottom="data", top="data,x_report"), {"data": 4, "x_report": 4}),
        (layer("ReLU", bottom="data", top="it_report"), {"it_report": 4}),
    ],
)
def test_a_mark_to_report_is_no_top_of_the_layer(text: str, shapes: dict[str, int], tmp_path: Path):
    seen = sites(net(text), tmp_path)
    assert {blob: seen.shapes[blob][1] for blob in shapes} == shapes
    assert not [f for f in examine(seen, RULES) if f.severity == "refused"]
    marked = [top for top in seen.layers[1].tops if top.endswith("_report")]
    assert set(marked) <= set(seen.outputs)


@pytest.mark.parametrize("target", ["nnie", "caffe", "bvlc"])
def test_weights_under_one_name_are_wrong_on_every_target(target: str, tmp_path: Path):
    path = tmp_path / "n.prototxt"
    path.write_text(net(layer("Convolution", CONV, name="c", top="a"), layer("Scale", name="c", top="b")))
    (finding,) = onnx2caffe.check(path, target=target).at_least("wrong")
    assert (finding.rule, finding.severity, finding.layer, finding.line) == ("W30", "wrong", "c", 3)


def test_a_plain_caffe_has_no_marks(tmp_path: Path):
    path = tmp_path / "n.prototxt"
    path.write_text(net(layer("ReLU", top="it,it_report")))
    (finding,) = onnx2caffe.check(path, target="caffe").findings
    assert "2 tops" in finding.text


def test_what_follows_an_unknown_layer_is_still_looked_at(tmp_path: Path):
    text = net(layer("Mystery"), layer("Permute", "permute_param { order: 0 order: 3 }", bottom="it", name="p"))
    assert {("E05", "it"), ("E01", "p")} <= {(f.rule, f.layer) for f in examine(sites(text, tmp_path), RULES)}


@pytest.mark.parametrize(
    ("text", "option"),
    [
        (one("DepthwiseConv", "convolution_param { num_output: 4 kernel_size: 3 }"), "--recipe depthwise=conv"),
        (one("Slice", "slice_param { axis: 3 slice_point: 7 }", top="a,b"), "--recipe crop=dw"),
        (one("Slice", "slice_param { axis: 1 }", top="a,b"), ""),
        (one("TanH"), ""),
        (
            net(layer("Deconvolution", "convolution_param { num_output: 4 kernel_size: 9 }"), shape=(1, 1, 1, 1)),
            "--recipe bilinear=deconv (of a linear Resize; approximate)",
        ),
        (one("Deconvolution", "convolution_param { num_output: 4 kernel_size: 9 }"), ""),
    ],
)
def test_the_option_beside_an_unseen_construct(text: str, option: str, tmp_path: Path):
    (finding,) = (f for f in examine(sites(text, tmp_path), RULES) if f.rule == "W22")
    assert finding.option == option


@pytest.mark.parametrize(
    ("dims", "text"),
    [
        ([4, 64], "takes 4096 bytes, 3072 of them empty"),
        ([1, 128, 2], "takes 2048 bytes, 1024 of them empty"),
    ],
)
def test_how_much_memory_an_output_wastes(dims: list[int], text: str, tmp_path: Path):
    shape = " ".join(f"dim: {dim}" for dim in (0, *dims))
    reshape = one("Reshape", f"reshape_param {{ shape {{ {shape} }} }}")
    (finding,) = (f for f in examine(sites(reshape, tmp_path), RULES) if f.rule == "W24")
    assert finding.text == f"output 'it' {text}"


def test_rows_of_another_memory(tmp_path: Path):
    rules = load_rules(write(tmp_path, "[W24.when]\nstride = 32\n"))
    text = one("Reshape", "reshape_param { shape { dim: 0 dim: 1 dim: 64 dim: 4 } }")
    assert "W24" in found(text, tmp_path, rules)


def test_a_field_is_said_as_one_writes_it(tmp_path: Path):
    text = one("ReLU", "relu_param { negative_slope: 0.1 }")
    (finding,) = (f for f in examine(sites(text, tmp_path), RULES) if f.rule == "W20")
    assert finding.text == "negative_slope 0.1 is not 0"


def write(folder: Path, text: str) -> Path:
    path = folder / "my.toml"
    path.write_text(text)
    return path


def test_a_user_changes_a_rule(tmp_path: Path):
    rules = load_rules(write(tmp_path, '[W20]\nseverity = "refused"\n[E13.when]\nmax_group = 2\n'))
    assert rules["W20"].severity == "refused"
    assert rules["W20"].when == RULES["W20"].when
    grouped = net(layer("Convolution", "convolution_param { num_output: 4 kernel_size: 1 group: 4 }"))
    assert "E13" in found(grouped, tmp_path, rules)
    assert "E13" not in found(grouped, tmp_path)


@pytest.mark.parametrize(
    ("condition", "caught"),
    [
        ("field = 'kernel_size', max = 7", True),
        ("field = 'kernel_size', max = 9", False),
        ("field = 'num_output', min = 5", True),
        ("field = 'bias_term', one_of = [false]", True),
        ("field = 'stride', one_of = [1, 2]", False),
        ("field = 'stride', one_of = ['SUM']", True),
    ],
)
def test_a_user_adds_a_rule(condition: str, caught: bool, tmp_path: Path):
    text = f"[X1]\nseverity = 'wrong'\nwhen = {{ types = ['Convolution'], {condition} }}\n"
    rules = load_rules(write(tmp_path, text))
    wide = net(layer("Convolution", "convolution_param { num_output: 4 kernel_h: 9 kernel_w: 3 pad_h: 4 pad_w: 1 }"))
    assert ("X1" in found(wide, tmp_path, rules)) is caught


@pytest.mark.parametrize(("types", "caught"), [("['Power', 'ReLU']", True), ("['SPP']", False), ("['Mine']", False)])
def test_a_user_adds_a_rule_about_types(types: str, caught: bool, tmp_path: Path):
    mine = "[E05]\nexempt = ['Mine']\n"
    rules = load_rules(write(tmp_path, f"{mine}[X1]\nseverity = 'refused'\nwhen = {{ types = {types} }}\n"))
    said = [f.text for f in examine(sites(one("ReLU", top="data"), tmp_path), rules) if f.rule == "X1"]
    assert said == ["type ReLU"] * caught


def test_a_type_that_the_users_mapper_refuses_is_not_written(tmp_path: Path):
    rules = write(tmp_path, "[X1]\nseverity = 'refused'\nwhen = { types = ['InnerProduct'] }\n")
    done = onnx2caffe.convert(save("classifier", tmp_path), tmp_path / "out", rules=rules, proof=False)
    assert "InnerProduct" not in done.prototxt.read_text()


@pytest.mark.parametrize(
    ("rule", "exempt", "text"),
    [
        ("E05", "NeverHeardOf", one("NeverHeardOf")),
        ("W22", "Slice", one("Slice", "slice_param { axis: 1 }", top="a,b")),
        ("W22", "type Slice", one("Slice", "slice_param { axis: 1 }", top="a,b")),
        (
            "W22",
            "Deconvolution of kernel 3x3*",
            one("Deconvolution", "convolution_param { num_output: 4 kernel_size: 3 }"),
        ),
        ("W20", "negative_slope 0.1 *", one("ReLU", "relu_param { negative_slope: 0.1 }", top="data")),
        ("W11", "TanH", net(layer("Convolution", CONV), layer("TanH", bottom="it", name="t"))),
        ("E09", "17 outputs*", one("Slice", "slice_param { axis: 3 }", top=",".join(map(str, range(17))))),
    ],
)
def test_a_user_takes_a_construct_out_of_a_rule(rule: str, exempt: str, text: str, tmp_path: Path):
    assert rule in found(text, tmp_path)
    assert rule not in found(text, tmp_path, load_rules(write(tmp_path, f"[{rule}]\nexempt = ['{exempt}']\n")))
    assert rule in found(text, tmp_path, load_rules(write(tmp_path, f"[{rule}]\nexempt = ['another']\n")))


def test_a_setting_of_the_cfg_is_taken_out_of_a_rule(tmp_path: Path):
    (tmp_path / "my.cfg").write_text("[my_key] 1\n[my_other] 1\n")
    (tmp_path / "n.prototxt").write_text(one("TanH"))
    rules = write(tmp_path, "[W23]\nexempt = ['key [my_key]']\n")
    report = onnx2caffe.check(tmp_path / "n.prototxt", cfg=tmp_path / "my.cfg", rules=rules)
    assert [f.text for f in report.findings if f.rule == "W23"] == ["key [my_other]"]


@pytest.mark.parametrize(
    "text",
    [
        "[X1]\nseverity = 'wrong'\n",
        "[X1]\nseverity = 'wrong'\nwhen = { field = 'kernel_size', max = 3 }\n",
        "[X1]\nseverity = 'wrong'\nwhen = { types = ['Convolution'], field = 'kernel_size' }\n",
        "[X1]\nseverity = 'wrong'\nwhen = { types = ['Convolution'], max = 3 }\n",
        "[X1]\nseverity = 'wrong'\nwhen = { types = ['Convolutoin'] }\n",
        "[W22]\nexempt = 'Slice'\n",
        "[X1]\nseverity = 'awful'\nwhen = { types = [], field = 'x', max = 1 }\n",
        "[E01]\nseverety = 'slow'\n",
        "E01 = 3\n",
        "[E01]\nwhen = 3\n",
        "[E01]\ntitle = 3\n",
        "[W09]\navoid = 'yes'\n",
        "[W16.when]\npattern = '['\n",
        "[W09.when]\nmax_branches = 'many'\n",
        "[W09.when]\nbranches = 3\n",
        "[X1]\nseverity = 'wrong'\nwhen = { types = 'ReLU', field = 'x', max = 1 }\n",
        "[X1]\nseverity = 'wrong'\nwhen = { types = ['ReLU'], field = 'x', max = 'one' }\n",
        "[X1]\nseverity = 'wrong'\nwhen = { types = ['ReLU'], field = 'x', max = 1, weight = 2 }\n",
    ],
)
def test_a_rule_that_means_nothing_is_refused(text: str, tmp_path: Path):
    with pytest.raises(UsageError):
        load_rules(write(tmp_path, text))


@pytest.mark.parametrize("what", ["segments", "inputs", "outputs"])
@pytest.mark.parametrize("most", [0, -1])
def test_a_rule_that_leaves_no_room_is_refused(what: str, most: int, tmp_path: Path):
    rules = write(tmp_path, f"[E09.when]\n{what} = {most}\n")
    model = save("classifier", tmp_path)
    for use in (
        lambda: onnx2caffe.convert(model, tmp_path / "out", rules=rules, proof=False),
        lambda: onnx2caffe.check(model, rules=rules),
    ):
        with pytest.raises(UsageError, match=f"rule E09: {what} = {most} leaves no room"):
            use()


@pytest.mark.parametrize(
    ("types", "field", "said", "hint"),
    [
        ("['Convolutoin']", "kernel_size", "type 'Convolutoin'", "Convolution"),
        ("['Convolution', 'RReLU']", "kernel_size", "type 'RReLU'", "ReLU"),
        ("['Convolution']", "kernal_size", "Convolution has no field 'kernal_size'", "kernel_size"),
        ("['Convolution', 'ReLU']", "kernel_size", "ReLU has no field 'kernel_size'", "negative_slope"),
        ("['Sigmoid']", "slope", "Sigmoid has no field 'slope'", "it has none"),
        ("['Convolution']", "blobs", "Convolution has no field 'blobs'", "kernel_size"),
    ],
)
def test_a_rule_that_could_find_nothing_is_refused(types: str, field: str, said: str, hint: str, tmp_path: Path):
    text = f"[X1]\nseverity = 'wrong'\nwhen = {{ types = {types}, field = '{field}', max = 1 }}\n"
    with pytest.raises(UsageError, match=said) as problem:
        load_rules(write(tmp_path, text))
    assert hint in problem.value.hint


def test_rules_that_are_no_toml(tmp_path: Path):
    with pytest.raises(UnreadableFile):
        load_rules(write(tmp_path, "[E01"))
    with pytest.raises(UnreadableFile):
        load_rules(tmp_path / "nothing.toml")


def test_a_rule_about_what_is_neither_number_nor_word(tmp_path: Path):
    rules = write(tmp_path, "[X1]\nseverity = 'refused'\nwhen = { types = ['Input'], field = 'shape', max = 3 }\n")
    net = onnx2caffe.convert(save("classifier", tmp_path), tmp_path / "out", proof=False).prototxt
    with pytest.raises(UsageError, match="rule X1: 'shape' of Input is neither"):
        onnx2caffe.check(net, rules=rules)
