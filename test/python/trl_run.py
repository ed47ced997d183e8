"""TRL's GRPOTrainer on a toy model, rewarded by examples/trl_reward.py; prints one line of JSON.

    python trl_run.py EXAMPLES_FOLDER TOKENIZER_FOLDER STEPS
"""
import json
import random
import sys
import tempfile

sys.path.insert(0, sys.argv[1])
import trl_reward

import torch
import transformers
import trl
from datasets import Dataset
from transformers import AutoTokenizer, LlamaConfig, LlamaForCausalLM

transformers.utils.logging.set_verbosity_error()
torch.manual_seed(0)
torch.set_num_threads(1)  # Several wait for each other where the machine has other work.
prompts, group, new, steps = 8, 8, 8, int(sys.argv[3])
tokenizer = AutoTokenizer.from_pretrained(sys.argv[2])
model = LlamaForCausalLM(LlamaConfig(num_hidden_layers=2, hidden_size=64, num_attention_heads=4, num_key_value_heads=4, intermediate_size=192, vocab_size=len(tokenizer),
                                     max_position_embeddings=256, tie_word_embeddings=True, bos_token_id=None, eos_token_id=tokenizer.eos_token_id, pad_token_id=None))
draw = random.Random(0)
pairs = [(draw.randint(1, 49), draw.randint(1, 49)) for _ in range(prompts * steps)]
seen = []


def reward(completions, answer, **columns):
    """The example's rewards, kept with what they were given for."""
    rewards = trl_reward.reward(completions=completions, answer=answer, **columns)
    seen.extend(zip(completions, answer, rewards))
    return rewards


with tempfile.TemporaryDirectory() as folder:
    config = trl.GRPOConfig(output_dir=folder, per_device_train_batch_size=prompts * group, num_generations=group, max_completion_length=new, max_steps=steps, learning_rate=3e-3,
                            lr_scheduler_type="constant", beta=0.0, loss_type="grpo", temperature=1.0, use_cpu=True, bf16=False, fp16=False, gradient_checkpointing=False, report_to=[],
                            logging_steps=1, save_strategy="no", disable_tqdm=True, use_vllm=False, generation_kwargs={"min_new_tokens": new}, seed=0)
    data = Dataset.from_dict(dict(prompt=[f"{a} + {b} =" for a, b in pairs], answer=[str(a + b) for a, b in pairs]))
    trainer = trl.GRPOTrainer(model, reward, args=config, train_dataset=data, processing_class=tokenizer)
    trainer.train()
logged = [entry["reward"] for entry in trainer.state.log_history if "reward" in entry]
print(json.dumps(dict(trl=trl.__version__, logged=logged, seen=seen)))
