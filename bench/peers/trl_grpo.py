"""TRL's GRPOTrainer on the CPU: seconds per optimisation step, split into generation, scoring and training.

    python trl_grpo.py --shape 1M   --prompts 16 --group 8 --new 32
    python trl_grpo.py --shape 135M --prompts 4  --group 8 --new 64 --steps 3 --warmup 1 --micro 8
    python trl_grpo.py --model FOLDER --prompts 8 --group 8 --new 64

Random Llama weights of the shape (the tiny shapes get the tokenizer's vocabulary), or any Hugging Face folder. The
tokenizer is the fixture's byte-level one unless the folder has its own. Rewards are plain Python. float32, no KL, one
iteration, transformers' generate, no gradient checkpointing, no vLLM, no loggers. By default every answer runs to --new
tokens (so that two trainers do the same work); --eos lets answers end.
"""
import random
import re
import sys
import tempfile
import time
from pathlib import Path

from common import arguments, gemm_rate, page_faults, say, spread

FIXTURE_TOKENIZER = Path(__file__).resolve().parents[2] / "test" / "fixtures" / "tokenizer" / "chatml"


def problems(n, seed=0):
    r = random.Random(seed)
    pairs = [(r.randint(1, 49), r.randint(1, 49)) for _ in range(n)]
    return dict(prompt=[f"{a} + {b} =" for a, b in pairs], answer=[str(a + b) for a, b in pairs])


def even_digits(completions, **_):
    """Share of even digits among the digits of the answer; 0 without digits."""
    out = []
    for c in completions:
        digits = [int(x) for x in c if x in "0123456789"]
        out.append(sum(d % 2 == 0 for d in digits) / len(digits) if digits else 0.0)
    return out


def exact_sum(completions, answer, **_):
    """1 if the first number of the answer is the sum."""
    return [float((m := re.search(r"\d+", c)) is not None and m.group() == a) for c, a in zip(completions, answer)]


class Clock:
    """Adds up the time spent in methods of one object."""

    def __init__(self, target, *names):
        self.total = dict.fromkeys(names, 0.0)
        for n in names:
            setattr(target, n, self.wrap(n, getattr(target, n)))

    def wrap(self, name, f):
        def timed(*a, **k):
            t = time.perf_counter()
            try:
                return f(*a, **k)
            finally:
                self.total[name] += time.perf_counter() - t
        return timed

    def take(self):
        out, self.total = self.total, dict.fromkeys(self.total, 0.0)
        return out


def main():
    def extra(ap):
        ap.add_argument("--model", help="a Hugging Face folder instead of random weights")
        ap.add_argument("--tokenizer", default=None)
        ap.add_argument("--prompts", type=int, default=16)
        ap.add_argument("--group", type=int, default=8)
        ap.add_argument("--new", type=int, default=32)
        ap.add_argument("--micro", type=int, help="sequences per forward/backward (default: all)")
        ap.add_argument("--steps", type=int, default=10)
        ap.add_argument("--warmup", type=int, default=3)
        ap.add_argument("--lr", type=float, default=1e-3)
        ap.add_argument("--reward", choices=["even", "sum"], default="even")
        ap.add_argument("--eos", action="store_true", help="let answers end before --new tokens")
    a = arguments(__doc__, extra)
    import transformers
    transformers.utils.logging.set_verbosity_error()
    import trl
    from datasets import Dataset
    from transformers import AutoModelForCausalLM, AutoTokenizer, LlamaConfig, LlamaForCausalLM, TrainerCallback
    import torch

    where = a.tokenizer or (a.model if a.model and (Path(a.model) / "tokenizer.json").exists() else FIXTURE_TOKENIZER)
    if not Path(where).exists():
        sys.exit(f"no tokenizer at {where}: make the fixtures first, or name one with --tokenizer")
    tok = AutoTokenizer.from_pretrained(where)
    if a.model:
        model = AutoModelForCausalLM.from_pretrained(a.model, dtype=torch.float32)
        c = model.config
        a.shape, a.dims = "folder", (c.num_hidden_layers, c.hidden_size, c.num_attention_heads, c.num_key_value_heads, c.intermediate_size, c.vocab_size)
        if len(tok) > c.vocab_size:
            sys.exit(f"the tokenizer has {len(tok)} tokens, the model {c.vocab_size}")
    else:
        L, C, H, K, M, V = a.dims
        V = max(V, len(tok))
        a.dims = (L, C, H, K, M, V)
        model = LlamaForCausalLM(LlamaConfig(num_hidden_layers=L, hidden_size=C, num_attention_heads=H, num_key_value_heads=K, intermediate_size=M, vocab_size=V,
                                             max_position_embeddings=4096, tie_word_embeddings=True, bos_token_id=None, eos_token_id=tok.eos_token_id, pad_token_id=None))
    rows = a.prompts * a.group
    micro = a.micro or rows
    if rows % micro or micro % a.group:
        sys.exit(f"--micro must divide {rows} and be a multiple of --group")
    total = a.warmup + a.steps
    history = []

    class Steps(TrainerCallback):
        def on_step_begin(self, *_, **__):
            self.t = time.perf_counter()

        def on_step_end(self, *_, **__):
            d = clock.take()
            d["step"] = time.perf_counter() - self.t
            d["faults"] = page_faults()
            history.append(d)

    with tempfile.TemporaryDirectory() as tmp:
        cfg = trl.GRPOConfig(output_dir=tmp, per_device_train_batch_size=micro, gradient_accumulation_steps=rows // micro, num_generations=a.group, max_completion_length=a.new,
                             max_steps=total, learning_rate=a.lr, lr_scheduler_type="constant", beta=0.0, loss_type="grpo", temperature=1.0, num_iterations=1, use_cpu=True,
                             bf16=False, fp16=False, gradient_checkpointing=False, report_to=[], logging_steps=1, save_strategy="no", disable_tqdm=True, use_vllm=False,
                             generation_kwargs=None if a.eos else {"min_new_tokens": a.new}, seed=0)
        trainer = trl.GRPOTrainer(model, even_digits if a.reward == "even" else exact_sum, args=cfg, train_dataset=Dataset.from_dict(problems(a.prompts * total)),
                                  processing_class=tok, callbacks=[Steps()])
        clock = Clock(trainer, "_generate_and_score_completions", "_generate", "_calculate_rewards", "_compute_loss")
        # TRL keeps the numbers of a step in _metrics until its own log(); ours reads them and clears them in its place
        kept = []

        def log(values, *_, **__):
            m = trainer._metrics["train"]
            kept.append({k: sum(v) / len(v) for k, v in m.items() if v})
            m.clear()
        trainer.log = log
        gemm = [gemm_rate()]
        trainer.train()
        gemm.append(gemm_rate())
    timed = history[a.warmup:]
    assert len(timed) == a.steps, (len(history), total)
    gen = [h["_generate"] for h in timed]
    score = [h["_generate_and_score_completions"] - h["_generate"] for h in timed]
    train = [h["step"] - h["_generate_and_score_completions"] for h in timed]
    steps = [h["step"] for h in timed]
    mean = lambda key: [round(k.get(key, float("nan")), 4) for k in kept[:total]]
    say("trl_grpo", a, parameters=sum(p.numel() for p in model.parameters()), prompts=a.prompts, group=a.group, new=a.new, micro=micro, steps=a.steps,
        reward_function=a.reward, fixed_length=not a.eos, **spread(steps, "step"), **spread(gen, "generation"), **spread(score, "scoring_and_rest"), **spread(train, "training"),
        loss_forward_ms_median=spread([h["_compute_loss"] for h in timed], "x")["x_ms_median"], reward_ms_median=spread([h["_calculate_rewards"] for h in timed], "x")["x_ms_median"],
        completion_tokens_per_s=round(rows * sum(k["completions/mean_length"] for k in kept[a.warmup:total]) / sum(steps)), mean_length=mean("completions/mean_length"), reward=mean("reward"),
        page_faults_a_step=round((history[-1]["faults"] - history[a.warmup - 1]["faults"]) / a.steps) if a.warmup else None,
        gemm_gflops_before=round(gemm[0], 1), gemm_gflops_after=round(gemm[1], 1), trl=trl.__version__, transformers=transformers.__version__)


if __name__ == "__main__":
    main()
