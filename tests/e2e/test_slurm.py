"""The Slurm script of the documentation, with stand-ins for `srun` and `scontrol`: it runs, stops, and goes on."""

import os
import re
import signal
import stat
import subprocess
import sys
import time
from pathlib import Path

import pytest

from angd.train.folder import RunFolder

START = "import sys, angd.program; sys.exit(angd.program.start())"
PAGE = Path(__file__).parents[2] / "docs" / "hosts.md"
# Two processes on one machine, with the variables of a step; the first exit code that is not 0 is that of the step.
SRUN = """#!/bin/bash
export SLURM_STEP_NUM_TASKS=2 SLURM_NTASKS=2 SLURM_STEP_NODELIST=127.0.0.1 SLURM_STEP_NUM_NODES=1
trap 'kill -TERM ${started[1]}' TERM
for i in 0 1; do
    SLURM_PROCID=$i SLURM_LOCALID=$i "$@" --heartbeat 10 &
    started[$i]=$!
done
for i in 0 1; do
    wait ${started[$i]}; one=$?
    while kill -0 ${started[$i]} 2> /dev/null; do wait ${started[$i]}; one=$?; done
    [ $one -gt ${code:-0} ] && code=$one
done
exit ${code:-0}
"""


def script():
    """The block of the page, with a smaller run."""
    text = re.search(r"^```bash\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    assert text is not None
    usual = "angd run burgers energy --steps 100000"
    assert usual in text[1]
    return text[1].replace(usual, "angd run heat adam --interior 32 --condition 8 --steps 300000")


def stand_ins(folder):
    """Programs of the same names, first on the path."""
    texts = {
        "srun": SRUN,
        "scontrol": '#!/bin/bash\necho "$@" >> requeued\n',
        "angd": f'#!/bin/bash\nexec {sys.executable} -c "{START}" "$@"\n',
    }
    for name, text in texts.items():
        path = folder / name
        path.write_text(text)
        path.chmod(path.stat().st_mode | stat.S_IXUSR)


def test_the_script_is_bash():
    done = subprocess.run(["bash", "-n"], input=script(), text=True, capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert "#SBATCH --requeue" in script()


@pytest.mark.slow
def test_the_script_stops_at_sigterm_asks_to_be_requeued_and_goes_on(tmp_path):
    (tmp_path / "bin").mkdir()
    stand_ins(tmp_path / "bin")
    job = str(os.getpid())
    path = f"{tmp_path / 'bin'}{os.pathsep}{os.environ['PATH']}"
    environment = os.environ | {"PATH": path, "SLURM_JOB_ID": job, "JAX_NUM_CPU_DEVICES": "1"}
    steps = []
    for _ in range(2):
        began = subprocess.Popen(
            ["bash", "-c", script()], cwd=tmp_path, env=environment, start_new_session=True, stderr=subprocess.PIPE
        )
        try:
            _wait_for_steps(tmp_path, (steps or [0])[-1] + 3)
            srun = subprocess.run(["pgrep", "-P", str(began.pid)], capture_output=True, text=True, check=True)
            os.kill(int(srun.stdout.split()[0]), signal.SIGTERM)
            _, error = began.communicate(timeout=120)
        finally:
            if began.poll() is None:
                os.killpg(began.pid, signal.SIGKILL)
        assert began.returncode == 143, error
        steps.append(RunFolder(tmp_path / "runs" / "burgers").records()[-1].step)
    assert steps[1] > steps[0]
    assert (tmp_path / "requeued").read_text() == 2 * f"requeue {job}\n"


def _wait_for_steps(home, count):
    deadline = time.monotonic() + 180
    metrics = home / "runs" / "burgers" / "metrics.jsonl"
    while not (metrics.exists() and metrics.read_bytes().count(b"\n") >= count):
        assert time.monotonic() < deadline
        time.sleep(0.1)
