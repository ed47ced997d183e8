"""Stands in for PEFT, of which SkyRL's JAX backend uses one class: it writes the configuration of an adapter."""

import json
import os


class LoraConfig:
    def __init__(self, base_model_name_or_path, r, lora_alpha):
        self.fields = {
            "peft_type": "LORA",
            "base_model_name_or_path": str(base_model_name_or_path),
            "r": r,
            "lora_alpha": lora_alpha,
        }

    def save_pretrained(self, folder):
        with open(os.path.join(folder, "adapter_config.json"), "w", encoding="utf-8") as file:
            json.dump(self.fields, file)
