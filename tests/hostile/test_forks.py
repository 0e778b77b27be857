"""Processes forked while other threads are at work, as pools and Spark's daemon do, work on: no lock stays shut."""

import subprocess
import sys

import pytest

PROGRAM = """
import os, signal, threading
import pyarrow as pa
import icefield as ice

numbers, texts = pa.array(range(300_000)), pa.array([f"text number {n}" for n in range(200_000)])
bucket, cut = ice.transforms.bucket(16), ice.transforms.truncate(5)
expected, done = bucket(numbers), threading.Event()

def busy():
    while not done.is_set():
        bucket(numbers)
        cut(texts)

threads = [threading.Thread(target=busy) for _ in range(2)]
for thread in threads:
    thread.start()
for _ in range(25):
    child = os.fork()
    if child == 0:
        signal.alarm(60)
        os._exit(0 if bucket(numbers) == expected and len(cut(texts)) == 200_000 else 1)
    assert os.waitpid(child, 0)[1] == 0
done.set()
print("all ended")
"""


@pytest.mark.skipif(sys.platform == "win32", reason="forks")
def test_forks_amid_work_go_on():
    run = subprocess.run([sys.executable, "-W", "ignore", "-c", PROGRAM], capture_output=True, text=True, check=False)
    assert run.stdout == "all ended\n", run.stderr
