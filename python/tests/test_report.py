"""Tests the page of `ckplan report` in a headless Chromium.

All tests are skipped, with a reason, if there is no browser. CKPLAN_SCREENSHOTS=FOLDER stores
pictures of the page.
"""

import json
import os
import subprocess
from pathlib import Path

import ckplan
import pytest

from browser import Browser, find_browser

TESTDATA = Path(__file__).parents[2] / "testdata"
MODELS = TESTDATA / "models"
MEGABYTE = 1_000_000

pytestmark = pytest.mark.skipif(
    find_browser() is None,
    reason="no browser: apt-get install chromium, or name one by CKPLAN_BROWSER",
)


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    opened = Browser(find_browser(), tmp_path_factory.mktemp("profile"))
    yield opened
    opened.close()


def ckplan_runs(*arguments):
    command = [str(argument) for argument in (ckplan.find_program(), *arguments)]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def make_plan(source, file, *options):
    ckplan_runs("plan", source, *options, "-q", "-o", file)
    return json.loads(file.read_text())


def make_report(plans, source, file, *options):
    ckplan_runs("report", *plans, "--model", source, "-q", "-o", file, *options)
    return file


def keep_screenshot(browser, name):
    folder = os.environ.get("CKPLAN_SCREENSHOTS")
    if folder:
        browser.screenshot(Path(folder) / f"{name}.png", whole=True)


def module_of_block(layer):
    return f"stage{layer // 100}.block{layer // 10}"


def module_of_transformer(layer):
    return f"model.layers.{layer // 10}.{'attn' if layer % 10 < 4 else 'mlp'}"


def long_joint_graph(operations, module_of=module_of_block):
    """Returns layers of a chain with skip connections, and their gradients."""
    layers = operations // 2
    ops, values = [], []
    for i in range(layers):
        values.append({"id": i, "name": f"h{i}", "bytes": 1 << 20})
        reads = [j for j in (i - 1, i - 7) if j >= 0]
        op = {"id": i, "name": f"forward{i}", "op": f"op{i % 9}"}
        ops.append(op | {"reads": reads, "writes": [i]})
    for i in reversed(range(layers)):
        number = 2 * layers - 1 - i
        values.append({"id": number, "name": f"g{i}", "bytes": 1 << 20})
        reads = [i] + ([number - 1] if number > layers else [])
        op = {"id": number, "name": f"backward{i}", "op": "grad"}
        ops.append(op | {"reads": reads, "writes": [number]})
    for op in ops:
        op["phase"] = "forward" if op["id"] < layers else "backward"
        op["cost"] = 1000 + op["id"] % 13
        op["module"] = module_of(op["id"] % layers)
    for value in values:
        value["kind"] = "value"
    head = {"schema_version": "1.0", "kind": "joint", "name": "layers"}
    return head | {"values": values, "ops": ops, "results": [layers - 1, 2 * layers - 1]}


def read_figure(browser, row, column):
    return browser.run(
        f"""[...document.querySelectorAll('table.summary tbody tr')]
            .find(row => row.cells[0].textContent === {json.dumps(row)})
            .cells[{column}].textContent"""
    )


def human_bytes(size):
    for unit in ["B", "KiB", "MiB", "GiB"]:
        if size < 1024:
            break
        size /= 1024
    return f"{size} B" if unit == "B" else f"{size:.2f} {unit}"


LARGE = {
    "resnet50": ["-D", "N=64", "--budget", "60%"],
    "unet_572": ["-D", "N=4", "--budget", "60%"],
    "gpt2_small": ["-D", "N=4", "--budget", "60%"],
    "timm_swin_base": ["-D", "N=8", "--budget", "60%"],
    "joint": ["--budget", "60%"],
}


@pytest.mark.parametrize("name", LARGE)
def test_large_reports_are_small_and_open_within_a_second(name, browser, tmp_path):
    source = MODELS / f"{name}.onnx"
    if name == "joint":
        source = tmp_path / "joint.json"
        source.write_text(json.dumps(long_joint_graph(1500)))
    plan = make_plan(source, tmp_path / "plan.json", "--algo", "dtr", *LARGE[name])
    report = tmp_path / "report.html"
    make_report([tmp_path / "plan.json"], source, report, "--no-pareto")
    assert report.stat().st_size < 3 * MEGABYTE
    browser.open(report)
    assert browser.cpu_seconds() < 1
    assert browser.errors == []
    assert browser.requests == [report.as_uri()]
    peak = plan["result"]["peak_bytes"]
    assert read_figure(browser, "Peak of activations", 2) == human_bytes(peak)
    assert human_bytes(peak) in browser.run("document.querySelector('.live-head').textContent")
    # The page's sums at the peak equal those of the program.
    kinds = json.loads(
        ckplan_runs("explain", tmp_path / "plan.json", "peak", source, "-f", "json")
    )["peak"]["by_kind"]
    shown = browser.run(
        "[...document.querySelectorAll('.live table')][0].querySelector('tbody').textContent"
    )
    for kind, size in kinds.items():
        word = kind.removesuffix("_bytes")
        if name == "joint" and word == "gradients":
            word = "backward"  # As `ckplan explain` calls it.
        assert size == 0 or f"{word}{human_bytes(size)}" in shown
    listed = browser.run("document.querySelector('table.live-list').textContent")
    assert name != "gpt2_small" or "used at the peak" in listed
    assert "nothing more" not in listed
    keep_screenshot(browser, f"large-{name}")


@pytest.fixture(scope="module")
def two_plans(tmp_path_factory):
    folder = tmp_path_factory.mktemp("two")
    source = MODELS / "resnet18.modules.onnx"
    options = ["-D", "N=16", "--autograd", "torch"]
    plans = [folder / "a.json", folder / "b.json"]
    make_plan(source, plans[0], *options, "--budget", "70%", "--effort", "quick")
    make_plan(source, plans[1], *options, "--algo", "chen-sqrt")
    two = make_report(plans, source, folder / "two.html")
    one = make_report(plans[:1], source, folder / "one.html", "--no-pareto")
    return one, two


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("width", [1400, 480, 400])
@pytest.mark.parametrize("count", [1, 2])
def test_nothing_overflows_at_any_width(count, width, dark, two_plans, browser):
    browser.open(two_plans[count - 1], width=width, dark=dark)
    assert browser.errors == []
    assert browser.run("document.documentElement.scrollWidth") <= width
    assert browser.run("document.querySelectorAll('canvas').length") == count
    # The picture is on the first screen, and no text of a picture is small or cut off.
    top = browser.run("document.querySelector('canvas').getBoundingClientRect().top")
    assert top < 480
    outside = browser.run(
        """[...document.querySelectorAll('svg.curve')].flatMap(svg => {
            const box = svg.getBoundingClientRect();
            return [...svg.querySelectorAll('text')].filter(text => {
                const inner = text.getBoundingClientRect();
                return inner.left < box.left - 1 || inner.right > box.right + 1 ||
                    inner.top < box.top - 1 || inner.bottom > box.bottom + 1 ||
                    parseFloat(getComputedStyle(text).fontSize) < 11;
            }).map(text => text.textContent); })"""
    )
    assert outside == []
    # So are the sizes of tensors.
    right = browser.run(
        """Math.max(...[...document.querySelectorAll('table.live-list, table.tensors')].map(table =>
            table.querySelector('td.number').getBoundingClientRect().right))"""
    )
    assert right <= width
    paper = browser.run("getComputedStyle(document.body).backgroundColor")
    assert paper == ("rgb(22, 24, 27)" if dark else "rgb(255, 255, 255)")
    # Every picture must show more colours than the paper and the grid.
    colours = browser.run(
        """Math.min(...[...document.querySelectorAll('canvas')].map(canvas => {
            const context = canvas.getContext('2d');
            const pixels = context.getImageData(0, 0, canvas.width, canvas.height).data.buffer;
            return new Set(new Uint32Array(pixels)).size; }))"""
    )
    assert colours > 20
    keep_screenshot(browser, f"plans{count}-{width}-{'dark' if dark else 'light'}")


def test_a_language_model_is_divided_into_several_modules(browser, tmp_path):
    source = tmp_path / "joint.json"
    source.write_text(json.dumps(long_joint_graph(320, module_of_transformer)))
    make_plan(source, tmp_path / "plan.json", "--algo", "dtr", "--budget", "60%")
    report = make_report([tmp_path / "plan.json"], source, tmp_path / "report.html", "--no-pareto")
    for width in [1400, 400]:
        browser.open(report, width=width)
        modules = browser.run(
            """[...document.querySelectorAll('.live-parts details')[0].querySelectorAll('tbody th')]
                .map(cell => cell.textContent)"""
        )
        assert "model.layers.*.attn ×16" in modules and "model.layers.*.mlp ×16" in modules
        # Different names stay different however short they are cut.
        names = browser.run(
            """[...document.querySelectorAll('.live-list td.name > [title]')]
                .map(cell => [cell.title, cell.textContent])"""
        )
        assert len({short for _, short in names}) == len({whole for whole, _ in names})
        assert all(len(short) < 40 for _, short in names)


def test_the_button_switches_colours(two_plans, browser):
    browser.open(two_plans[0])
    browser.run("document.getElementById('theme').click()")
    assert browser.run("getComputedStyle(document.body).backgroundColor") == "rgb(22, 24, 27)"
    browser.run("document.getElementById('theme').click()")
    assert browser.run("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"


TIPS = "[...document.querySelectorAll('.tip')].map(tip => tip.hidden ? '' : tip.textContent)"


def middle_of(browser, index=0):
    box = browser.run(
        f"""(() => {{ const canvas = document.querySelectorAll('canvas')[{index}];
            canvas.scrollIntoView({{block: 'center'}}); const box = canvas.getBoundingClientRect();
            return [box.left + box.width / 2, box.top + 150, box.width]; }})()"""
    )
    return box


def test_the_pointer_shows_zooms_and_selects(two_plans, browser):
    browser.open(two_plans[1])
    x, y, width = middle_of(browser)
    browser.mouse("mouseMoved", x, y)
    tips = browser.run(TIPS)
    assert "step " in tips[0] and "in use" in tips[0] and "keeping all" in tips[0]
    assert "step " in tips[1]  # The other plan highlights the same work.
    everything = browser.run("document.querySelector('canvas').toDataURL()")
    browser.mouse("mousePressed", x, y, 1)
    browser.mouse("mouseMoved", x + width / 8, y, 1)
    browser.mouse("mouseReleased", x + width / 8, y, 1)
    browser.mouse("mouseMoved", 5, 5)
    zoomed = browser.run("document.querySelector('canvas').toDataURL()")
    assert zoomed != everything
    before = browser.run("document.querySelector('.live-head').textContent")
    assert "At the peak" in before
    browser.click(x - width / 4, y)
    chosen = browser.run("document.querySelector('.live-head').textContent")
    assert "At a step that you chose" in chosen and "Back to the peak" in chosen
    browser.run("document.querySelector('.live-head button').click()")
    assert browser.run("document.querySelector('.live-head').textContent") == before
    assert browser.errors == []


def test_the_keyboard_does_what_the_pointer_does(two_plans, browser):
    browser.open(two_plans[0])
    browser.run("document.querySelector('canvas').focus()")
    browser.key("p")
    at_peak = browser.run(TIPS)[0]
    browser.key("ArrowRight")
    assert browser.run(TIPS)[0] != at_peak
    assert browser.run("document.getElementById('announcement').textContent").startswith("step ")
    browser.key("ArrowLeft")
    assert browser.run(TIPS)[0] == at_peak
    whole = browser.run("document.querySelector('canvas').toDataURL()")
    browser.key("+")
    assert browser.run("document.querySelector('canvas').toDataURL()") != whole
    browser.key("0")
    assert browser.run("document.querySelector('canvas').toDataURL()") == whole
    browser.key("Home")
    assert browser.run(TIPS)[0].startswith("step 0:")
    browser.key("Enter")
    assert "at step 0 of" in browser.run("document.querySelector('.live-head').textContent")
    browser.key("Escape")
    assert "At the peak" in browser.run("document.querySelector('.live-head').textContent")
    # Tab alone must reach everything from the top of the page.
    browser.run("document.activeElement.blur(); window.scrollTo(0, 0)")
    reached = set()
    for _ in range(80):
        browser.key("Tab")
        reached.add(browser.run("document.activeElement.id || document.activeElement.className"))
    assert {"theme", "axis", "constants", "memory", "link"} <= reached
    assert {"search", "filter", "sort", "table-box"} <= reached
    assert browser.errors == []


def first_cells(browser, column, count=5):
    return browser.run(
        f"""[...document.querySelectorAll('table.tensors tbody tr:not(.space)')].slice(0, {count})
            .map(row => row.cells[{column}].textContent)"""
    )


def test_tensors_are_searched_sorted_filtered_and_selected(two_plans, browser):
    browser.open(two_plans[1])
    heads = browser.run(
        "[...document.querySelectorAll('button.sort')].map(each => each.textContent)"
    )
    assert heads[3] == "Size ▼" and "A: Action" in heads and "B: Action" in heads
    by_size = first_cells(browser, 0)
    browser.run("document.querySelectorAll('button.sort')[0].click()")
    names = first_cells(browser, 0)
    assert names == sorted(names) and names != by_size
    browser.run("document.querySelectorAll('button.sort')[0].click()")
    assert first_cells(browser, 0)[0] > names[0]

    def search(text):
        browser.run(
            f"""(() => {{ const box = document.getElementById('search');
                box.value = {json.dumps(text)}; box.dispatchEvent(new Event('input')); }})()"""
        )
        return browser.run(
            "document.querySelector('#tensors-body .controls [role=status]').textContent"
        )

    found = search("layer1.0 conv")
    assert 0 < int(found.split(" of ")[0]) < int(found.split(" of ")[1])
    assert all("layer1.0" in module for module in first_cells(browser, 2))
    assert search("no such tensor").startswith("0 of")
    search("")
    browser.run(
        """(() => { const box = document.getElementById('filter'); box.value = 'differs';
            box.dispatchEvent(new Event('change')); })()"""
    )
    of_a = list(zip(first_cells(browser, 4), first_cells(browser, 5)))
    of_b = list(zip(first_cells(browser, 7), first_cells(browser, 8)))
    assert of_a and all(a != b for a, b in zip(of_a, of_b))
    # The keyboard selects as well.
    lane = browser.run("document.querySelector('canvas').toDataURL()")
    browser.run("document.querySelector('.table-box').focus()")
    browser.key("ArrowDown")
    browser.key("Enter")
    selected = browser.run("document.querySelector('.details h3').textContent")
    assert selected == first_cells(browser, 0)[1]
    assert "in memory at steps" in browser.run("document.querySelector('.details').textContent")
    assert browser.run("document.querySelector('canvas').toDataURL()") != lane
    browser.key("Escape")
    assert browser.run("document.querySelector('.details').textContent") == ""
    assert browser.errors == []


def test_figures_are_in_words(two_plans, browser):
    browser.open(two_plans[0])
    labels = browser.run(
        "[...document.querySelectorAll('dl.figures dt')].map(each => each.textContent)"
    )
    assert labels == ["Peak", "Time", "Budget", "Proof"]
    tops = browser.run(
        """[...document.querySelectorAll('dl.figures dt')]
            .map(each => each.getBoundingClientRect().top)"""
    )
    assert len(set(tops)) == 1
    made = browser.run("document.querySelector('details.all-figures').textContent")
    assert "N=16 · objective time · effort quick · cost model flops:a100-40g" in made
    assert "_" not in made
    browser.open(two_plans[1])
    heads = browser.run(
        "[...document.querySelectorAll('table.figures thead th')].map(each => each.textContent)"
    )
    assert heads == ["Plan", "Peak", "Time", "Budget", "Proof"]


def test_the_curve_shows_the_plans(two_plans, browser):
    browser.open(two_plans[1])
    assert browser.run("document.querySelectorAll('svg.curve .point').length") > 3
    labels = browser.run(
        "[...document.querySelectorAll('.plan-mark text')].map(each => each.textContent)"
    )
    assert sorted(labels) == ["A", "B", "keep all"]


def test_ten_thousand_operations_are_usable(browser, tmp_path):
    source = tmp_path / "joint.json"
    source.write_text(json.dumps(long_joint_graph(10_000)))
    make_plan(source, tmp_path / "plan.json", "--algo", "keep-all")
    report = make_report([tmp_path / "plan.json"], source, tmp_path / "report.html", "--no-pareto")
    assert report.stat().st_size < 3 * MEGABYTE
    browser.open(report)
    assert browser.cpu_seconds() < 3
    assert browser.run("document.querySelectorAll('table.tensors tbody tr').length") < 100
    actions = [
        f"document.querySelector('canvas').dispatchEvent(new KeyboardEvent('keydown', {{key: '{key}'}}))"
        for key in ["p", "ArrowRight", "+", "+", "End", "0"]
    ]
    actions.append(
        "(input => { input.value = 'h77'; input.dispatchEvent(new Event('input')); })"
        "(document.getElementById('search'))"
    )
    browser.run("document.querySelector('canvas').focus()")
    for action in actions:
        before = browser.cpu_seconds()
        browser.run(action)
        assert browser.cpu_seconds() - before < 0.4, action
    assert browser.errors == []


def test_hostile_names_are_text(browser, tmp_path):
    names = [
        "</script><script>window.forged = 1</script>",
        "<img src=x onerror='window.forged = 1'>",
        "\u2028line\u2029",
        "\u202eturned",
        "<!--<script>",
        "{{script}}",
        "quote\" \\ ' `${window.forged = 1}`",
        "javascript:window.forged=1",
    ]
    node = {"bytes": 1000, "time": 10}
    nodes = [node | {"id": i, "name": name, "op": name} for i, name in enumerate(names)]
    edges = [[i, i + 1] for i in range(len(names) - 1)]
    source = tmp_path / "net.json"
    source.write_text(json.dumps({"name": names[0], "nodes": nodes, "edges": edges}))
    make_plan(source, tmp_path / "plan.json", "--algo", "chen-sqrt")
    report = make_report([tmp_path / "plan.json"], source, tmp_path / "report.html")
    browser.open(report)
    browser.run("document.querySelector('table.tensors tbody tr').click()")
    assert browser.run("window.forged") is None
    assert browser.run("document.querySelectorAll('img').length") == 0
    shown = browser.run("document.querySelector('table.tensors').textContent")
    assert "<img src=x onerror='window.forged = 1'>" in shown
    assert "\\u2028line" in shown and "\\u202eturned" in shown
    assert browser.errors == []
    assert browser.requests == [report.as_uri()]
