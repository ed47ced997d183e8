"""Reads jobs (a JSON list) from standard input and prints, for each, what the Python programs say of our files.

{"kind": "folder", "path", "ids"}            transformers' log-probs of a model folder, [sequence][token][vocabulary], in float32
{"kind": "adapter", "base", "path", "ids"}   the same of a base with a PEFT folder on it
{"kind": "gguf", "path", "ids"}              the same of a GGUF file through transformers' own reader
{"kind": "bytes", "path", "folder"}          the gguf package's view of a GGUF file, and the tensors whose bytes differ from what it makes of the folder's
{"kind": "tokenizer", "path", "texts", "chats"}   ids of texts and of chats
"""
import json
import os
import sys

os.environ.update(HF_HUB_OFFLINE="1", TRANSFORMERS_VERBOSITY="error", TOKENIZERS_PARALLELISM="false", CUDA_VISIBLE_DEVICES="")

import gguf
import numpy as np
import torch
from peft import PeftModel
from safetensors.numpy import load_file
from transformers import AutoModelForCausalLM, AutoTokenizer

torch.set_num_threads(1)


def log_probs(model, ids):
    model.eval()
    with torch.no_grad():
        return [torch.log_softmax(model(torch.tensor([row])).logits[0].double(), -1).tolist() for row in ids]


def load(path, **more):
    model, told = AutoModelForCausalLM.from_pretrained(path, dtype=torch.float32, output_loading_info=True, **more)
    for kind in ("missing_keys", "unexpected_keys", "mismatched_keys"):
        if told.get(kind):
            raise SystemExit(f"{path}: {kind} {told[kind]}")
    return model


def interleaved(rows, heads):
    size = rows.shape[0] // heads
    return rows.reshape(heads, 2, size // 2, -1).swapaxes(1, 2).reshape(rows.shape)


def compare_bytes(path, folder):
    reader = gguf.GGUFReader(path)
    config = json.load(open(os.path.join(folder, "config.json")))
    weights = load_file(os.path.join(folder, "model.safetensors"))
    names = gguf.get_tensor_name_map(getattr(gguf.MODEL_ARCH, config["model_type"].upper()), config["num_hidden_layers"])
    heads = {"q_proj.weight": config["num_attention_heads"], "k_proj.weight": config["num_key_value_heads"]}
    wanted = {}
    for name, values in weights.items():
        count = next((n for end, n in heads.items() if name.endswith(end)), None)
        if config["model_type"] == "llama" and count:
            values = interleaved(values, count)
        wanted[names.get_name(name, try_suffixes=(".weight", ".bias"))] = values
    different = sorted(set(wanted) ^ {tensor.name for tensor in reader.tensors})
    for tensor in reader.tensors:
        kind, values = tensor.tensor_type, wanted.get(tensor.name)
        if values is not None and gguf.quants.quantize(np.ascontiguousarray(values, np.float32), kind).tobytes() != tensor.data.tobytes():
            different.append(tensor.name)
    fields = {key: field.contents() for key, field in reader.fields.items() if not key.startswith("GGUF.")}
    return {"different": different, "types": {tensor.name: tensor.tensor_type.name for tensor in reader.tensors}, "fields": fields}


def token_ids(path, texts, chats):
    tokenizer = AutoTokenizer.from_pretrained(path)
    return {
        "texts": [tokenizer(text, add_special_tokens=False)["input_ids"] for text in texts],
        "chats": [tokenizer.apply_chat_template(chat, add_generation_prompt=True, return_dict=False) for chat in chats],
    }


def answer(job):
    kind = job.pop("kind")
    if kind == "folder":
        return log_probs(load(job["path"]), job["ids"])
    if kind == "adapter":
        return log_probs(PeftModel.from_pretrained(load(job["base"]), job["path"]), job["ids"])
    if kind == "gguf":
        return log_probs(load(os.path.dirname(job["path"]), gguf_file=os.path.basename(job["path"])), job["ids"])
    return compare_bytes(**job) if kind == "bytes" else token_ids(**job)


json.dump([answer(job) for job in json.load(sys.stdin)], sys.stdout)
