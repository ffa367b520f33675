// Stores of your own, for what outlives a call. Callgate encrypts records and cached results with the engine's `keys`, and stores digests in
// place of the keys of limits: values are opaque to a store. What a store throws counts as unavailable: the call is denied, or bypasses the cache.

import type { RequestHandlers } from './operations';

/** A stored value. */
export interface StoredValue {
  value: string;
  /** Changes with each write; a positive integer that no later value of the same key has again. */
  version: number;
}

/** A value to write, if the stored one has the expected version. */
export interface StoredWrite {
  key: string;
  value: string;
  /** The version that the stored value must have; `null` if none may exist. */
  expectedVersion: number | null;
  /** When the store may delete the value, in RFC 3339; `null` for never. */
  forgetAt: string | null;
}

/** A value of a space to write. */
export interface RecordWrite extends StoredWrite {
  space: string;
}

/** Stores calls, approvals, sessions and budgets, for all processes that share it. A key names one value of a space. */
export interface RecordStore {
  /** The value of this key. */
  read(space: string, key: string): Promise<StoredValue | null> | StoredValue | null;
  /** Writes in one step, if the version is the expected one. Returns whether it did. Of several writers over one version, one succeeds. */
  write(write: RecordWrite): Promise<boolean> | boolean;
  /** Up to `limit` values whose keys come after `after`, ordered by key. */
  list(
    space: string,
    after: string | null,
    limit: number,
  ): Promise<({ key: string } & StoredValue)[]> | ({ key: string } & StoredValue)[];
}

/** Stores what was acquired of rate limits and budgets, one value for each limit. `concurrency` is counted elsewhere, in `state`. */
export interface LimitStore {
  /** The values of these keys, in their order. */
  read(keys: string[]): Promise<(StoredValue | null)[]> | (StoredValue | null)[];
  /** Writes all values in one step, if each version is the expected one; otherwise none. Returns whether it did. */
  write(writes: StoredWrite[]): Promise<boolean> | boolean;
}

/** The result of a lookup in a cache. */
export interface CachedValue {
  value: string | null;
  /** How often the space was cleared. */
  generation: number;
}

/** A cached result to write. */
export interface CacheWrite {
  space: string;
  key: string;
  value: string;
  /** Do not write if the space was cleared since this generation. */
  generation: number;
  /** In RFC 3339. */
  expiresAt: string;
  /** How many entries the space may have. */
  maxEntries: number;
}

/** Stores cached results. A key names one value of a space. */
export interface CacheStore {
  /** The value of this key, and how often the space was cleared. */
  get(space: string, key: string): Promise<CachedValue> | CachedValue;
  /** Stores a value, unless the space was cleared since the generation. */
  put(write: CacheWrite): Promise<void> | void;
  /** Removes all values of the space. */
  clear(space: string): Promise<void> | void;
}

/** Stores of your own. What is absent is in `state`. */
export interface HostStores {
  recordStore?: RecordStore | undefined;
  limitStore?: LimitStore | undefined;
  cacheStore?: CacheStore | undefined;
}

/** The handlers of the requests of stores. */
export function storeHandlers({ recordStore, limitStore, cacheStore }: HostStores): RequestHandlers {
  const text = (value: unknown): string => String(value);
  return {
    ...(recordStore && {
      readRecord: async ({ space, key }) => ({ record: await recordStore.read(text(space), text(key)) }),
      writeRecord: async request => ({ written: await recordStore.write(request as unknown as RecordWrite) }),
      listRecords: async ({ space, after, limit }) => ({
        records: await recordStore.list(text(space), after as string | null, limit as number),
      }),
    }),
    ...(limitStore && {
      readLimits: async ({ keys }) => ({ values: await limitStore.read(keys as string[]) }),
      writeLimits: async ({ writes }) => ({ written: await limitStore.write(writes as unknown as StoredWrite[]) }),
    }),
    ...(cacheStore && {
      readCache: async ({ space, key }) => ({ found: await cacheStore.get(text(space), text(key)) }),
      writeCache: async request => {
        await cacheStore.put(request as unknown as CacheWrite);
        return {};
      },
      clearCache: async ({ space }) => {
        await cacheStore.clear(text(space));
        return {};
      },
    }),
  };
}
