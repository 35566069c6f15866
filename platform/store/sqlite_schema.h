// The tables of the database, and what each version changed.
#pragma once

#include <array>

namespace muster::store {

inline constexpr int kSchemaVersion = 2;

/// kMigrations[n] makes version n + 1 of version n; version 0 is an empty database.
///
/// Version 2: projects and what was set for nodes. A job's name is one of all projects, as it
/// always was for whoever asked for it.
inline constexpr std::array<const char*, kSchemaVersion> kMigrations{
    R"sql(
CREATE TABLE job (
  sequence INTEGER PRIMARY KEY AUTOINCREMENT,
  id TEXT NOT NULL UNIQUE,
  project TEXT NOT NULL,
  name TEXT NOT NULL,
  idempotency_key TEXT UNIQUE,
  document BLOB NOT NULL,
  UNIQUE (project, name)
) STRICT;
PRAGMA user_version = 1;
)sql",
    R"sql(
ALTER TABLE job RENAME TO old_job;
CREATE TABLE job (
  sequence INTEGER PRIMARY KEY AUTOINCREMENT,
  id TEXT NOT NULL UNIQUE,
  name TEXT NOT NULL UNIQUE,
  idempotency_key TEXT UNIQUE,
  document BLOB NOT NULL
) STRICT;
INSERT INTO job SELECT sequence, id, name, idempotency_key, document FROM old_job;
DROP TABLE old_job;
CREATE TABLE project (
  name TEXT PRIMARY KEY,
  sequence INTEGER NOT NULL,
  document BLOB NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE node_setting (
  name TEXT PRIMARY KEY,
  cordoned INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
PRAGMA user_version = 2;
)sql"};

}  // namespace muster::store
