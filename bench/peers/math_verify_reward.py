"""Math-Verify as a reward function, in its two settings: as it is, and with $ signs around texts without a delimiter, its best one for bare answers.

    touchstone audit python:bench/peers/math_verify_reward.py:wrapped --options '{"python":"…/bin/python"}'

Needs math-verify (requirements-math.txt).
"""
import logging
import re

from math_verify import parse, verify

logging.disable(logging.CRITICAL)
DELIMITER = re.compile(r"\$|\\\(|\\\[|\\boxed|\\begin\{")


def judged(reference, response, dress):
    try:
        return bool(verify(parse(dress(reference)), parse(dress(response))))
    except BaseException as error:  # its timeout derives from BaseException
        if isinstance(error, KeyboardInterrupt):
            raise
        raise RuntimeError(f"{type(error).__name__}: {error}") from None


def default(problem, response):
    return judged(problem["reference"], response, lambda text: text)


def wrapped(problem, response):
    return judged(problem["reference"], response, lambda text: text if DELIMITER.search(text) else f"${text}$")
