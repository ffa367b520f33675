//! Stores that the host wrote in Python: `callgate/stores.py` has their interfaces. What they store is sealed.

use callgate::host::{
    Account, CacheEntry, CacheLookup, CacheSpace, CacheStore, ConditionalWrite, Record, RecordKey,
    RecordPage, RecordStore, StoreError, StoreFuture,
};
use callgate::json;
use callgate_state::{LimitValue, LimitValues, LimitWrite, read_entry, write_entry};
use jiff::Timestamp;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyType;

use crate::method_requests::{arguments, call_store, read_result};

static WRITE: PyOnceLock<Py<PyType>> = PyOnceLock::new();
static DATETIME: PyOnceLock<Py<PyType>> = PyOnceLock::new();

/// A stored value as Python returns it.
#[derive(FromPyObject)]
struct StoredValue {
    value: String,
    version: u64,
}

/// A lookup in a cache as Python returns it.
#[derive(FromPyObject)]
struct StoredResult {
    value: Option<String>,
    generation: u64,
}

/// A conditional write, before it is an object of Python.
struct Write {
    key: String,
    value: String,
    expected_version: Option<u64>,
    forget_at: Option<Timestamp>,
}

impl Write {
    /// The `Write` of `callgate.stores`.
    fn to_python<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let class = WRITE.import(py, "callgate.stores", "Write")?;
        let forget_at = self.forget_at.map(|time| datetime(py, time)).transpose()?;
        class.call1((&self.key, &self.value, self.expected_version, forget_at))
    }
}

fn datetime(py: Python<'_>, time: Timestamp) -> PyResult<Bound<'_, PyAny>> {
    DATETIME.import(py, "datetime", "datetime")?.call_method1("fromisoformat", (time.to_string(),))
}

fn damaged(error: impl std::fmt::Display) -> StoreError {
    StoreError::Unavailable(format!("the store returned something else than Callgate wrote: {error}"))
}

fn record(stored: StoredValue) -> Result<Record, StoreError> {
    Ok(Record { value: json::parse(&stored.value).map_err(damaged)?, version: stored.version })
}

/// A `RecordStore` of Python.
pub(crate) struct PythonRecordStore(pub(crate) Py<PyAny>);

impl RecordStore for PythonRecordStore {
    fn record<'a>(&'a self, key: RecordKey<'a>) -> StoreFuture<'a, Option<Record>> {
        Box::pin(async move {
            let arguments = Python::attach(|py| arguments(py, (key.space, key.key)));
            let result = call_store(&self.0, "read", arguments).await?;
            read_result::<Option<StoredValue>>(&result)?.map(record).transpose()
        })
    }

    fn write_record<'a>(&'a self, _: Timestamp, write: ConditionalWrite<'a>) -> StoreFuture<'a, bool> {
        Box::pin(async move {
            let space = write.key.space;
            let write = Write {
                key: write.key.key.to_owned(),
                value: write.value.to_string(),
                expected_version: write.expected_version,
                forget_at: write.forget_at,
            };
            let arguments = Python::attach(|py| arguments(py, (space, write.to_python(py)?)));
            read_result(&call_store(&self.0, "write", arguments).await?)
        })
    }

    fn records<'a>(
        &'a self,
        space: &'a str,
        after: Option<&'a str>,
        limit: usize,
    ) -> StoreFuture<'a, RecordPage> {
        Box::pin(async move {
            let arguments = Python::attach(|py| arguments(py, (space, after, limit)));
            let result = call_store(&self.0, "list", arguments).await?;
            let listed = read_result::<Vec<(String, StoredValue)>>(&result)?;
            let more = listed.len() >= limit;
            let records = listed.into_iter().map(|(key, stored)| Ok((key, record(stored)?)));
            Ok(RecordPage { records: records.collect::<Result<_, StoreError>>()?, more })
        })
    }

    fn has_lost_records<'a>(&'a self, _: &'a Account) -> StoreFuture<'a, bool> {
        Box::pin(async { Ok(false) })
    }

    fn is_shared(&self) -> bool {
        true
    }
}

/// A `LimitStore` of Python.
pub(crate) struct PythonLimitStore(pub(crate) Py<PyAny>);

impl LimitValues for PythonLimitStore {
    fn read<'a>(&'a self, keys: &'a [String]) -> StoreFuture<'a, Vec<Option<LimitValue>>> {
        Box::pin(async move {
            let arguments = Python::attach(|py| arguments(py, (keys.to_vec(),)));
            let result = call_store(&self.0, "read", arguments).await?;
            let value = |StoredValue { value, version }| LimitValue { value, version };
            let found = read_result::<Vec<Option<StoredValue>>>(&result)?;
            Ok(found.into_iter().map(|stored| stored.map(value)).collect())
        })
    }

    fn write<'a>(&'a self, writes: &'a [LimitWrite]) -> StoreFuture<'a, bool> {
        Box::pin(async move {
            let arguments = Python::attach(|py| {
                let writes = writes.iter().cloned().map(|write| {
                    let LimitWrite { key, value, expected_version, forget_at } = write;
                    Write { key, value, expected_version, forget_at }.to_python(py)
                });
                arguments(py, (writes.collect::<PyResult<Vec<_>>>()?,))
            });
            read_result(&call_store(&self.0, "write", arguments).await?)
        })
    }
}

/// A `CacheStore` of Python.
pub(crate) struct PythonCacheStore(pub(crate) Py<PyAny>);

impl CacheStore for PythonCacheStore {
    fn cache_get<'a>(
        &'a self,
        now: Timestamp,
        space: CacheSpace<'a>,
        key: &'a str,
    ) -> StoreFuture<'a, CacheLookup> {
        Box::pin(async move {
            let arguments = Python::attach(|py| arguments(py, (space.name, key)));
            let result = call_store(&self.0, "get", arguments).await?;
            let StoredResult { value, generation } = read_result(&result)?;
            Ok(CacheLookup { entry: value.and_then(|value| read_entry(&value, now)), generation })
        })
    }

    fn cache_put<'a>(
        &'a self,
        space: CacheSpace<'a>,
        key: &'a str,
        entry: CacheEntry,
        generation: u64,
    ) -> StoreFuture<'a, ()> {
        Box::pin(async move {
            let arguments = Python::attach(|py| {
                let expires_at = datetime(py, entry.expires_at)?;
                let value = write_entry(&entry);
                arguments(py, (space.name, key, value, generation, expires_at, space.max_entries))
            });
            call_store(&self.0, "put", arguments).await.map(drop)
        })
    }

    fn cache_clear<'a>(&'a self, space: &'a str) -> StoreFuture<'a, ()> {
        Box::pin(async move {
            let arguments = Python::attach(|py| arguments(py, (space,)));
            call_store(&self.0, "clear", arguments).await.map(drop)
        })
    }

    fn exposes_cache(&self) -> bool {
        true
    }
}
