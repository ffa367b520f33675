// A store of your own for calls, approvals, sessions and budgets.

import type { RequestHandlers } from './operations';

/** A stored record. The value is sealed: it has no meaning without the engine's keys. */
export interface StoredRecord {
  value: string;
  /** Changes with each write; a positive integer that no later record of the same key has again. */
  version: number;
}

/** What to write, if the stored record has the expected version. */
export interface RecordWrite {
  space: string;
  key: string;
  value: string;
  /** The version that the stored record must have; `null` if none may exist. */
  expectedVersion: number | null;
  /** When the store may delete the record, in RFC 3339; `null` for never. */
  forgetAt: string | null;
}

/** A store that keeps records for all processes of an agent. Whatever it throws counts as unavailable, and denies the call. */
export interface RecordStore {
  /** The record with this key. */
  read(space: string, key: string): Promise<StoredRecord | null> | StoredRecord | null;
  /** Writes in one step, if the version is the expected one. Returns whether it did. Of several writers over one version, one succeeds. */
  write(write: RecordWrite): Promise<boolean> | boolean;
  /** Up to `limit` records whose keys come after `after`, ordered by key. */
  list(
    space: string,
    after: string | null,
    limit: number,
  ): Promise<({ key: string } & StoredRecord)[]> | ({ key: string } & StoredRecord)[];
}

/** The handlers of a store's requests. */
export function recordStoreHandlers(store: RecordStore | undefined): RequestHandlers {
  if (store === undefined) {
    return {};
  }
  return {
    readRecord: async request => ({ record: await store.read(String(request['space']), String(request['key'])) }),
    writeRecord: async request => ({ written: await store.write(request as unknown as RecordWrite) }),
    listRecords: async request => ({
      records: await store.list(
        String(request['space']),
        request['after'] as string | null,
        request['limit'] as number,
      ),
    }),
  };
}
