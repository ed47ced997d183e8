import { CapabilityError, EngineError } from "../../core/errors.js";
import type {
  CallOptions,
  Derivatives,
  Engine,
  LoadRequest,
  ParameterSet,
  SaveOptions,
  ScoreWant,
  Sequence,
  StepRequest,
  TensorValue,
  Want,
  WeightsRef,
} from "../contract.js";
import type { Replica } from "../replica.js";

/** Makes a call by its name. Both sides are of one protocol version, so the arguments have the types of the contract. */
export function dispatch(engine: Engine, method: string, args: readonly unknown[], options: CallOptions): Promise<unknown> {
  const [first, second, third] = args;
  const { weights } = engine;
  switch (method) {
    case "score":
      return engine.score(first as Sequence[], second as ScoreWant | undefined, options);
    case "forward":
      return engine.forward(first as Sequence[], second as Want | undefined, options);
    case "backward":
      return engine.backward(first as string, second as Derivatives[], third as ParameterSet);
    case "release":
      return engine.release(first as string);
    case "step":
      return engine.step(first as StepRequest);
    case "usage":
      return engine.usage();
    case "weights.load":
      return weights.load(first as LoadRequest);
    case "weights.unload":
      return weights.unload(first as string);
    case "weights.info":
      return weights.info(first as string);
    case "weights.snapshot":
      return weights.snapshot(first as string, second as string);
    case "weights.restore":
      return weights.restore(first as string, second as string);
    case "weights.dropSnapshot":
      return weights.dropSnapshot(first as string, second as string);
    case "weights.read":
      return weights.read(first as WeightsRef, second as string[]);
    case "weights.write":
      return weights.write(first as string, second as TensorValue[]);
    case "weights.readGradient":
      return weights.readGradient(first as ParameterSet, second as string[]);
    case "weights.zeroGradient":
      return weights.zeroGradient(first as ParameterSet);
    case "weights.saveOptimizer":
      return weights.saveOptimizer(first as ParameterSet, second as string);
    case "weights.loadOptimizer":
      return weights.loadOptimizer(first as ParameterSet, second as string);
    case "weights.resetOptimizer":
      return weights.resetOptimizer(first as ParameterSet);
    case "weights.merge":
      return weights.merge(first as string);
    case "weights.resetAdapter":
      return weights.resetAdapter(first as string, second as number);
    case "weights.save":
      return weights.save(first as WeightsRef, second as string, third as SaveOptions | undefined);
    case "exportGradient":
      return replica(engine).exportGradient(first as ParameterSet, second as string);
    case "importGradient":
      return replica(engine).importGradient(first as ParameterSet, second as string[]);
    default:
      throw new EngineError({
        place: `engine ${engine.info.name}`,
        cause: `it knows no call ${method}`,
        mend: "install the same version of touchstone on both sides",
      });
  }
}

function replica(engine: Engine): Replica {
  if (!("exportGradient" in engine)) {
    throw new CapabilityError({ place: `engine ${engine.info.name}`, cause: "it cannot be one of several training workers", mend: "use one worker" });
  }
  return engine as Replica;
}
