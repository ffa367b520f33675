// The package: evaluates the tool calls of an agent against policies, in process.

export {
  Engine,
  type EngineEvent,
  type EngineOptions,
  type InboxItem,
  type ReloadStatus,
  type RulesWatch,
  type SessionOptions,
} from './engine';
export { CallgateError, type Diagnostic, type ErrorCode, RulesError } from './errors';
export { type Dialect, History } from './history';
export type { BeforeAction, ErrorAction, Hook, HookCall, Next } from './hooks';
export { ExactNumber, type JsonObject, type JsonValue, NotJsonError, parseJson, stringifyJson } from './json';
export type { CachedValue, CacheStore, CacheWrite, LimitStore, RecordStore, RecordWrite, StoredValue, StoredWrite } from './stores';
export { type Chunk, type ModelConfig, type RunEnd, RunEndedError, type Usage } from './run';
export { type CallOptions, type ConcurrentCallOptions, ConcurrentSession, Session } from './session';
export {
  type ApprovalRequest,
  type ApprovalResponse,
  type Approver,
  type CompletedOutcome,
  type Decision,
  type Effect,
  type Evaluation,
  type FailedOutcome,
  isCompleted,
  type Outcome,
  type PolicyTrace,
  type Reason,
  refusalMessage,
  type RefusedOutcome,
  type Round,
  type RunningCall,
  type SuspendedOutcome,
  type Tool,
  type ToolCall,
  type ToolContext,
  type ToolDescriptor,
  type Tools,
} from './types';
