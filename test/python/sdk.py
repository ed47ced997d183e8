"""Reads a model that was trained by the protocol, with its own client: log-probs of given ids, as JSON on the last line."""

import json
import sys

import tinker

path, ids = json.load(open(sys.argv[1], encoding="utf-8"))["path"], json.loads(sys.argv[2])
service = tinker.ServiceClient()
training = service.create_training_client_from_state(path)
sampling = training.save_weights_and_get_sampling_client(name="read-by-the-sdk")
print(json.dumps(sampling.compute_logprobs(tinker.types.ModelInput.from_ints(ids)).result()))
