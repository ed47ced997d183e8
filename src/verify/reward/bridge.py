"""Calls a Python reward function for Touchstone: batches as lines of JSON on standard input, results on standard output.

Usage: bridge.py FILE FUNCTION text|messages
How the function is called follows from its parameters: completions as in TRL, solution_str as in verl, else (problem, response).
"""
import asyncio
import importlib.util
import inspect
import json
import math
import os
import sys
import traceback

REFERENCES = ("answer", "answers", "ground_truth", "reference", "solution", "target", "label")


def load(path, name):
    """The function of a file, imported as a module whose folder can be imported from."""
    sys.path.insert(0, os.path.dirname(os.path.abspath(path)))
    spec = importlib.util.spec_from_file_location("touchstone_reward", path)
    module = importlib.util.module_from_spec(spec)
    sys.modules["touchstone_reward"] = module
    spec.loader.exec_module(module)
    function = getattr(module, name, None)
    if not callable(function):
        sys.exit(f"{path} has no function {name}")
    return function


def plain(value):
    """A result as JSON carries it: numbers of numpy and torch too."""
    if value is None or isinstance(value, (bool, str)):
        return value
    if isinstance(value, dict):
        return {str(key): plain(each) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(each) for each in value]
    if hasattr(value, "item") and not isinstance(value, (int, float)):
        value = value.item()
    if isinstance(value, int):
        return value
    try:
        number = float(value)
    except (TypeError, ValueError):
        return repr(value)
    # JSON has no such numbers; an answer with one is unscored.
    return number if math.isfinite(number) else {"unscored": "not-finite"}


def finite(result):
    """A result whose own number is not finite says so at its top."""
    if isinstance(result, dict):
        for name in ("reward", "score"):
            if isinstance(result.get(name), dict):
                return {"unscored": "not-finite"}
    return result


def fault(error):
    last = traceback.extract_tb(error.__traceback__)[-1]
    return f"{type(error).__name__}: {error} (line {last.lineno} of {os.path.basename(last.filename)})"


def columns(items, parameters):
    """What TRL would pass as columns: one list a name, those that the function takes."""
    open_ended = any(p.kind is inspect.Parameter.VAR_KEYWORD for p in parameters.values())
    names = {name for item in items for name in (*item["problem"]["info"], *item["problem"]["tags"])}
    wanted = names if open_ended else names & set(parameters)
    found = {name: [{**i["problem"]["tags"], **i["problem"]["info"]}.get(name) for i in items] for name in wanted}
    for name in REFERENCES:
        if name not in found and (name in parameters or (open_ended and name in ("answer", "reference"))):
            found[name] = [item["problem"]["reference"] for item in items]
    for name in ("completion_ids", "trainer_state"):
        if name in parameters and name not in found:
            found[name] = [None] * len(items) if name == "completion_ids" else None
    return found


def as_trl(function, parameters, form):
    async def run(items):
        messages = form == "messages"
        completions = [[{"role": "assistant", "content": i["response"]}] if messages else i["response"] for i in items]
        prompts = [i["problem"]["prompt"] if messages else i["problem"]["prompt"][-1]["content"] for i in items]
        given = {**columns(items, parameters), "completions": completions}
        if "prompts" in parameters or any(p.kind is inspect.Parameter.VAR_KEYWORD for p in parameters.values()):
            given["prompts"] = prompts
        results = function(**given)
        if inspect.isawaitable(results):
            results = await results
        return [plain(result) for result in results]

    return run


def one_by_one(call):
    async def each(item):
        try:
            result = call(item)
            if inspect.isawaitable(result):
                result = await result
            return finite(plain(result))
        except Exception as error:
            return {"unscored": "exception", "message": fault(error)}

    async def run(items):
        return list(await asyncio.gather(*(each(item) for item in items)))

    return run


def as_verl(function, parameters):
    def call(item):
        problem = item["problem"]
        given = {
            "data_source": problem["tags"].get("data_source", problem["tags"].get("source", "")),
            "solution_str": item["response"],
            "ground_truth": problem["reference"],
            "extra_info": problem["info"].get("extra_info", problem["info"]),
        }
        open_ended = any(p.kind is inspect.Parameter.VAR_KEYWORD for p in parameters.values())
        return function(**{name: value for name, value in given.items() if open_ended or name in parameters})

    return one_by_one(call)


def main():
    path, name, form = sys.argv[1:4]
    # What the function prints must not stand among the results.
    out = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    function = load(path, name)
    parameters = inspect.signature(function).parameters
    if "completions" in parameters:
        run = as_trl(function, parameters, form)
    elif "solution_str" in parameters:
        run = as_verl(function, parameters)
    else:
        run = one_by_one(lambda item: function(item["problem"], item["response"]))
    loop = asyncio.new_event_loop()
    for line in iter(sys.stdin.buffer.readline, b""):
        batch = json.loads(line)
        try:
            answer = {"id": batch["id"], "results": loop.run_until_complete(run(batch["items"]))}
        except Exception as error:
            answer = {"id": batch["id"], "error": fault(error)}
        out.write(json.dumps(answer) + "\n")
        out.flush()


main()
