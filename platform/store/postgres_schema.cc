#include "store/postgres_schema.h"

#include <algorithm>

#include "store/postgres_copy.h"
#include "store/records.h"
#include "store/sqlite_schema.h"

namespace muster::store {

using base::Error;
using base::ErrorCode;

namespace {

/// The checksum of each row of a table, which takes the row's content as it is.
Result<void> fill_in_checksums_of(PostgresConnection& connection, const RecordKind& kind) {
  constexpr size_t kRowsATrip = 500;
  std::vector<std::pair<std::string, int64_t>> checksums;
  // The place of the row comes behind the columns of the query.
  std::string query = kind.query(kFirstVersionWithChecksums);
  query.insert(query.find(" FROM "), ", ctid::text");
  MUSTER_CHECK(connection.each_row(query, [&](const PostgresRows& one) -> Result<void> {
    const size_t key_size = kind.key.size();
    const RecordRow row = one.record(0, key_size);
    std::vector<std::string_view> columns = row.key;
    columns.push_back(row.document);
    checksums.emplace_back(one.bytes(0, static_cast<int>(key_size) + 2), checksum_of(columns));
    return {};
  }));
  const std::string update =
      std::string("UPDATE ") + kind.table + " SET checksum = $1::int8 WHERE ctid = $2::text::tid";
  for (size_t first = 0; first < checksums.size(); first += kRowsATrip) {
    std::vector<PostgresStep> steps;
    const size_t end = std::min(checksums.size(), first + kRowsATrip);
    for (size_t i = first; i < end; ++i) {
      const auto& [place, checksum] = checksums[i];
      steps.push_back({.statement = update,
                       .parameters = PostgresParameters().number(checksum).text(place),
                       .is_prepared = false});
    }
    if (const auto sent = connection.pipeline(steps); !sent) return sent.error();
  }
  return {};
}

Result<void> fill_in_checksums(PostgresConnection& connection) {
  for (const RecordKind& kind : kRecordKinds) {
    MUSTER_CHECK(fill_in_checksums_of(connection, kind));
  }
  return fill_in_checksums_of(connection, kAuditKind);
}

// COLLATE "C": names are ordered by their bytes, as everywhere else. A key may be any bytes. A
// document of a job is written often and its other columns never: with room left in each page the
// indexes need not be touched (HOT).
constexpr PostgresMigration kMigrations[] = {{3, R"sql(
CREATE TABLE job (
  sequence int8 PRIMARY KEY,
  id text COLLATE "C" NOT NULL UNIQUE,
  project text COLLATE "C" NOT NULL,
  name text COLLATE "C" NOT NULL,
  idempotency_key bytea UNIQUE,
  document bytea NOT NULL,
  UNIQUE (project, name)
) WITH (fillfactor = 70);
CREATE TABLE project (
  name text COLLATE "C" PRIMARY KEY,
  sequence int8 NOT NULL,
  document bytea NOT NULL
);
CREATE TABLE node_setting (
  name text COLLATE "C" PRIMARY KEY,
  cordoned int8 NOT NULL
);
CREATE TABLE account (
  name text COLLATE "C" PRIMARY KEY,
  document bytea NOT NULL
);
CREATE TABLE token (
  id text COLLATE "C" PRIMARY KEY,
  document bytea NOT NULL
);
CREATE TABLE secret (
  project text COLLATE "C" NOT NULL,
  name text COLLATE "C" NOT NULL,
  document bytea NOT NULL,
  PRIMARY KEY (project, name)
);
CREATE TABLE audit (
  number int8 PRIMARY KEY,
  time int8 NOT NULL,
  actor text COLLATE "C" NOT NULL,
  project text COLLATE "C" NOT NULL,
  action text COLLATE "C" NOT NULL,
  document bytea NOT NULL
);
CREATE INDEX audit_of_actor ON audit (actor, number);
CREATE INDEX audit_of_project ON audit (project, number);
CREATE TABLE leader (
  address text NOT NULL,
  generation int8 NOT NULL,
  commit_number int8 NOT NULL
);
INSERT INTO leader VALUES ('', 0, 0);
CREATE TABLE schema_version (version int8 NOT NULL);
INSERT INTO schema_version VALUES (0);
)sql"},
                                             {4, R"sql(
CREATE TABLE subscription (
  id text COLLATE "C" PRIMARY KEY,
  document bytea NOT NULL
);
CREATE TABLE delivery (
  id text COLLATE "C" PRIMARY KEY,
  document bytea NOT NULL
) WITH (fillfactor = 70);
)sql"},
                                             {5, R"sql(
ALTER TABLE job ADD COLUMN checksum int8 NOT NULL DEFAULT 0;
ALTER TABLE project ADD COLUMN checksum int8 NOT NULL DEFAULT 0;
ALTER TABLE account ADD COLUMN checksum int8 NOT NULL DEFAULT 0;
ALTER TABLE token ADD COLUMN checksum int8 NOT NULL DEFAULT 0;
ALTER TABLE secret ADD COLUMN checksum int8 NOT NULL DEFAULT 0;
ALTER TABLE subscription ADD COLUMN checksum int8 NOT NULL DEFAULT 0;
ALTER TABLE delivery ADD COLUMN checksum int8 NOT NULL DEFAULT 0;
ALTER TABLE node_setting ADD COLUMN checksum int8 NOT NULL DEFAULT 0;
ALTER TABLE audit ADD COLUMN checksum int8 NOT NULL DEFAULT 0;
CREATE TABLE set_aside (
  number int8 PRIMARY KEY,
  time int8 NOT NULL,
  title text COLLATE "C" NOT NULL,
  fault text COLLATE "C" NOT NULL,
  source text COLLATE "C" NOT NULL,
  sequence int8,
  id text COLLATE "C",
  project text COLLATE "C",
  name text COLLATE "C",
  idempotency_key bytea,
  document bytea,
  checksum int8 NOT NULL
);
)sql",
                                              fill_in_checksums}};

Result<void> refuse_while_somebody_leads(PostgresConnection& connection) {
  MUSTER_TRY(
      const PostgresRows free,
      connection.query(std::string("SELECT pg_try_advisory_xact_lock(") + kLeaderLock + ")"));
  if (free.number(0, 0) == 1) return {};
  return Error{.code = ErrorCode::kConflict,
               .what = "a server of an earlier version uses the database " + connection.url().shown,
               .advice = "stop it first: the tables are about to change"};
}

/// Written under another name and renamed: a backup that is there is whole.
Result<void> back_up_postgres(PostgresConnection& connection, int version,
                              const std::filesystem::path& folder) {
  const std::filesystem::path file = folder / ("postgres.version-" + std::to_string(version));
  const std::filesystem::path partial = file.string() + ".partial";
  std::error_code failed;
  std::filesystem::remove(partial, failed);
  {
    MUSTER_TRY(SqliteDatabase copy, SqliteDatabase::open(partial, SqliteDatabase::Mode::kMake));
    MUSTER_CHECK(migrate(copy, std::min(version, kSchemaVersion)));
    MUSTER_CHECK(copy_to_sqlite(connection, copy));
  }
  std::filesystem::rename(partial, file, failed);
  if (!failed) return {};
  return base::system_error("cannot make the backup '" + file.string() + "'", failed.value());
}

Result<void> run_postgres_migrations(PostgresConnection& connection,
                                     std::span<const PostgresMigration> migrations,
                                     const std::filesystem::path& backup_folder) {
  // Of two servers that start at once, one waits here and then finds all done.
  MUSTER_CHECK(
      connection.execute("SET LOCAL lock_timeout = 0; SET LOCAL statement_timeout = 0;"
                         "SELECT pg_advisory_xact_lock(1297437524)"));
  MUSTER_TRY(const int found, schema_version(connection));
  if (found >= migrations.back().to) return {};
  if (found > 0) {
    MUSTER_CHECK(refuse_while_somebody_leads(connection));
    MUSTER_CHECK(back_up_postgres(connection, found, backup_folder));
  }
  for (const PostgresMigration& migration : migrations) {
    if (migration.to <= found) continue;
    MUSTER_CHECK(connection.execute(migration.sql));
    if (migration.then != nullptr) MUSTER_CHECK(migration.then(connection));
  }
  return connection.execute("UPDATE schema_version SET version = " +
                            std::to_string(migrations.back().to));
}

}  // namespace

const std::span<const PostgresMigration> kPostgresMigrations(kMigrations);

Result<int> schema_version(PostgresConnection& connection) {
  // Not to_regclass(): in a transaction that waited for another's it may still not see the tables.
  MUSTER_TRY(const PostgresRows there,
             connection.query("SELECT count(*) FROM pg_class WHERE relname IN ('schema_version',"
                              " 'leader') AND relkind = 'r' AND relnamespace ="
                              " (SELECT oid FROM pg_namespace WHERE nspname = current_schema())"));
  if (there.number(0, 0) < 2) return 0;
  MUSTER_TRY(const PostgresRows version, connection.query("SELECT version FROM schema_version"));
  return version.size() == 0 ? 0 : static_cast<int>(version.number(0, 0));
}

Result<void> migrate(PostgresConnection& connection, std::span<const PostgresMigration> migrations,
                     const std::filesystem::path& backup_folder) {
  MUSTER_TRY(const int found, schema_version(connection));
  if (found > migrations.back().to) {
    return newer_schema("the database " + connection.url().shown, found);
  }
  if (found == migrations.back().to) return {};
  MUSTER_CHECK(connection.execute("BEGIN ISOLATION LEVEL READ COMMITTED"));
  Result<void> done = run_postgres_migrations(connection, migrations, backup_folder);
  if (done) return connection.execute("COMMIT");
  (void)connection.execute("ROLLBACK");
  return done;
}

}  // namespace muster::store
