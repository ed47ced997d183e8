/** Bytes as a real server of the protobuf dialect sent and took them. */
import { describe, expect, it } from "vitest";
import { decodePass, decodeSample, encodePass, messages } from "./proto.js";

const hex = (text: string): Buffer => Buffer.from(text.replace(/\s/g, ""), "hex");

const request = hex(`0a0e6d6f64656c5f363938623836323210011a90010a0c0a0a0a080a00000014000000121d0a0a616476616e7461676573120f0a080000
00000000803f1801220102121b0a086c6f6770726f6273120f0a0800000000000018c1180122010212280a0d7461726765745f746f6b65
6e7312170a1014000000000000001e000000000000001802220102121a0a0777656967687473120f0a08000000000000803f1801220102
220370706f2a1d0a12636c69705f6c6f775f7468726573686f6c64119a9999999999e93f`);

const result = hex(`0a067363616c6172126212320a10656c656d656e74776973655f6c6f7373121e0a080000008032c256bf12100000000000000000080000
00000000001801122a0a086c6f6770726f6273121e0a0860a467c184cf1ac112100000000000000000080000000000000018011801`);

const sampled = hex("0a160801120852000000420100001a08cc4993bf32f624c0120860a467c184cf1ac1");

const datum = { ids: Int32Array.of(10, 20, 30), from: 1, weight: 1, policy: { advantages: Float32Array.of(1), logprobs: Float32Array.of(-9.5) } };
/** What the pass was over whose result stands above: two targets, both of which count. */
const passed = [{ ids: Int32Array.of(10, 20, 30), from: 0, weight: 1 }];

describe("the protobuf dialect", () => {
  it("writes the bytes that a server took", () => {
    const { path, type, body } = encodePass({
      model: "model_698b8622",
      seq: 1,
      data: [datum],
      loss: "ppo",
      config: { clip_low_threshold: 0.8 },
      forwardOnly: false,
    });
    expect([path, type]).toEqual(["/api/v1/forward_backward", "application/x-protobuf"]);
    // A decoder keeps no order of maps, so both are compared as read, and by their lengths.
    expect(messages.request.decode(body as Uint8Array).toJSON()).toEqual(messages.request.decode(request).toJSON());
    expect((body as Uint8Array).length).toBe(request.length);
  });

  it("asks for a forward pass by a flag", () => {
    const { body } = encodePass({ model: "m", seq: 3, data: [datum], loss: "cross_entropy", forwardOnly: true });
    expect(messages.request.decode(body as Uint8Array).toJSON()).toMatchObject({ model_id: "m", seq_id: "3", loss_fn: "cross_entropy", forward_only: true });
  });

  it("reads log-probs of a pass and of samples", () => {
    const logprobs = decodePass(result, passed)!;
    expect(logprobs).toHaveLength(1);
    expect(logprobs[0][0]).toBeCloseTo(-14.477631, 6);
    expect(logprobs[0][1]).toBeCloseTo(-9.675663, 6);
    const { sequences, promptLogprobs } = decodeSample(sampled)!;
    expect(sequences.map(({ ids, stop }) => [[...ids], stop])).toEqual([[[82, 322], "length"]]);
    expect([...sequences[0].logprobs, ...promptLogprobs!].map((x) => x.toFixed(6))).toEqual(["-1.150690", "-2.577527", "-14.477631", "-9.675663"]);
  });

  it("takes no half of a message for a result", () => {
    for (let length = 1; length < result.length; length++) {
      const part = decodePass(result.subarray(0, length), passed);
      // A message may end between two fields: then it is whole, and lacks what nobody reads.
      if (part) expect([...part[0]], `${length} bytes`).toEqual([...decodePass(result, passed)![0]]);
    }
    expect(decodeSample(sampled.subarray(0, 21))).toBeUndefined();
    expect(decodePass(Buffer.from("no message at all"), passed)).toBeUndefined();
  });
});
