"""Math-Verify: accuracy and verdicts per second over a file of pairs.

    python math_verify_bench.py ../../test/cases/math-bug-reports.jsonl
    python math_verify_bench.py ../../test/data/math500.jsonl --self --field answer

Lines are {"gold": ..., "pred": ..., "expected": true|false}; lines with "disputed" or "policy" are left out unless --all.
--self judges every reference against itself (all must be equal), as a pure measure of speed. --mode wrapped puts $ signs
around texts without any math delimiter, which is Math-Verify's best setting for bare answers; default passes them as they are.
Single process, main thread (its time limit uses SIGALRM). Needs math-verify (or its source folders on PYTHONPATH).
"""
import argparse
import contextlib
import io
import json
import logging
import platform
import re
import resource
import statistics
import sys
import time

DELIMITER = re.compile(r"\$|\\\(|\\\[|\\boxed|\\begin\{")


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("file")
    ap.add_argument("--mode", choices=["default", "wrapped"], default="wrapped")
    ap.add_argument("--self", action="store_true", help="gold against itself")
    ap.add_argument("--field", default="gold", help="the reference's field with --self")
    ap.add_argument("--all", action="store_true")
    ap.add_argument("--limit", type=int)
    ap.add_argument("--repeat", type=int, default=1)
    ap.add_argument("--show", type=int, default=0, help="print the first n wrong verdicts to stderr")
    a = ap.parse_args()
    try:
        import math_verify
        from math_verify import parse, verify
    except ImportError as e:
        sys.exit(f"math-verify is not importable ({e}); see requirements.txt")
    try:
        from importlib.metadata import version
        release = version("math-verify")
    except Exception:
        release = "from source"
    import sympy
    logging.disable(logging.CRITICAL)

    rows = []
    with open(a.file, encoding="utf-8") as f:
        for line in f:
            if not line.strip():
                continue
            r = json.loads(line)
            if a.self:
                text = str(r[a.field]).split("####")[-1].strip()        # GSM8K keeps the number after ####
                rows.append((text, text, True))
            elif a.all or not ("disputed" in r or "policy" in r):
                rows.append((str(r["gold"]), str(r["pred"]), bool(r["expected"])))
    rows = rows[:a.limit] * a.repeat

    def dress(text):
        return text if a.mode == "default" or DELIMITER.search(text) else f"${text}$"

    def judge(gold, pred):
        return bool(verify(parse(dress(gold)), parse(dress(pred))))

    judge("1", "1")                                                     # loads the grammar
    seconds, fn, fp, failed, shown = [], 0, 0, 0, 0
    start, processor = time.perf_counter(), time.process_time()
    for gold, pred, expected in rows:
        t = time.perf_counter()
        with contextlib.redirect_stdout(io.StringIO()):
            try:
                verdict = judge(gold, pred)
            except BaseException as e:                                  # its timeout derives from BaseException
                if isinstance(e, KeyboardInterrupt):
                    raise
                verdict, failed = False, failed + 1
        seconds.append(time.perf_counter() - t)
        if verdict != expected:
            fn, fp = fn + expected, fp + (not expected)
            if shown < a.show:
                shown += 1
                print(f"wrong: gold {gold!r} pred {pred!r} expected {expected}", file=sys.stderr)
    total, processor = time.perf_counter() - start, time.process_time() - processor
    ordered = sorted(seconds)
    print(json.dumps(dict(
        peer="math_verify", file=a.file.split("/")[-1], mode=a.mode, self=a.self, pairs=len(rows), accuracy=round(1 - (fn + fp) / len(rows), 4), false_negative=fn, false_positive=fp,
        exceptions=failed, verdicts_per_s=round(len(rows) / total, 1), verdicts_per_processor_s=round(len(rows) / processor, 1), ms_median=round(statistics.median(ordered) * 1e3, 3), ms_p99=round(ordered[int(0.99 * (len(ordered) - 1))] * 1e3, 2),
        ms_max=round(ordered[-1] * 1e3, 1), peak_rss_gb=round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6, 2), math_verify=release, sympy=sympy.__version__,
        python=platform.python_version())))


if __name__ == "__main__":
    main()
