#include "store/postgres_schema.h"

#include <algorithm>
#include <array>

#include "store/sqlite_schema.h"

namespace muster::store {

using base::Error;
using base::ErrorCode;

namespace {

// COLLATE "C": names are ordered by their bytes, as everywhere else. A key may be any bytes. A
// document of a job is written often and its other columns never: with room left in each page the
// indexes need not be touched (HOT).
constexpr std::array<const char*, kSchemaVersion> kPostgresSteps = {R"sql(
CREATE TABLE job (
  sequence int8 PRIMARY KEY,
  id text COLLATE "C" NOT NULL UNIQUE,
  project text COLLATE "C" NOT NULL,
  name text COLLATE "C" NOT NULL,
  idempotency_key bytea UNIQUE,
  document bytea NOT NULL,
  checksum int8 NOT NULL,
  UNIQUE (project, name)
) WITH (fillfactor = 70);
CREATE TABLE project (
  name text COLLATE "C" PRIMARY KEY,
  sequence int8 NOT NULL,
  document bytea NOT NULL,
  checksum int8 NOT NULL
);
CREATE TABLE node_setting (
  name text COLLATE "C" PRIMARY KEY,
  cordoned int8 NOT NULL,
  checksum int8 NOT NULL
);
CREATE TABLE account (
  name text COLLATE "C" PRIMARY KEY,
  document bytea NOT NULL,
  checksum int8 NOT NULL
);
CREATE TABLE token (
  id text COLLATE "C" PRIMARY KEY,
  document bytea NOT NULL,
  checksum int8 NOT NULL
);
CREATE TABLE secret (
  project text COLLATE "C" NOT NULL,
  name text COLLATE "C" NOT NULL,
  document bytea NOT NULL,
  checksum int8 NOT NULL,
  PRIMARY KEY (project, name)
);
CREATE TABLE subscription (
  id text COLLATE "C" PRIMARY KEY,
  document bytea NOT NULL,
  checksum int8 NOT NULL
);
CREATE TABLE delivery (
  id text COLLATE "C" PRIMARY KEY,
  document bytea NOT NULL,
  checksum int8 NOT NULL
) WITH (fillfactor = 70);
CREATE TABLE audit (
  number int8 PRIMARY KEY,
  time int8 NOT NULL,
  actor text COLLATE "C" NOT NULL,
  project text COLLATE "C" NOT NULL,
  action text COLLATE "C" NOT NULL,
  document bytea NOT NULL,
  checksum int8 NOT NULL
);
CREATE INDEX audit_of_actor ON audit (actor, number);
CREATE INDEX audit_of_project ON audit (project, number);
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
CREATE TABLE leader (
  address text NOT NULL,
  generation int8 NOT NULL,
  commit_number int8 NOT NULL
);
INSERT INTO leader VALUES ('', 0, 0);
CREATE TABLE schema_version (version int8 NOT NULL);
INSERT INTO schema_version VALUES (0);
)sql",
                                                                    R"sql(
CREATE TABLE object (
  kind text COLLATE "C" NOT NULL,
  id text COLLATE "C" NOT NULL,
  project text COLLATE "C" NOT NULL,
  name text COLLATE "C" NOT NULL,
  document bytea NOT NULL,
  checksum int8 NOT NULL,
  PRIMARY KEY (kind, id),
  UNIQUE (kind, project, name)
) WITH (fillfactor = 70);
)sql",
                                                                    R"sql(
ALTER TABLE job ADD COLUMN facts bytea;
)sql",
                                                                    R"sql(
CREATE INDEX audit_of_time ON audit (time, number);
CREATE INDEX audit_of_action ON audit (action, number);
)sql"};

/// Also prevents others from leading until the transaction ends.
Result<bool> another_session_leads(PostgresConnection& connection) {
  MUSTER_TRY(
      const PostgresRows free,
      connection.query(std::string("SELECT pg_try_advisory_xact_lock(") + kLeaderLock + ")"));
  return free.number(0, 0) != 1;
}

/// Written under another name and renamed: an existing backup is complete.
Result<void> back_up_postgres(PostgresConnection& connection, int version,
                              const std::filesystem::path& folder) {
  const std::filesystem::path file = folder / ("postgres.version-" + std::to_string(version));
  const std::filesystem::path partial = file.string() + ".partial";
  std::error_code failed;
  std::filesystem::remove(partial, failed);
  {
    MUSTER_TRY(SqliteDatabase copy, SqliteDatabase::open(partial, SqliteDatabase::Mode::kMake));
    const auto known = static_cast<size_t>(std::min(version, kSchemaVersion));
    MUSTER_CHECK(migrate(copy, kSqliteMigrations.first(known)));
    MUSTER_CHECK(copy_to_sqlite(connection, copy));
  }
  std::filesystem::rename(partial, file, failed);
  if (!failed) return {};
  return base::system_error("cannot create the backup '" + file.string() + "'", failed.value());
}

/// False: another session leads on the older version.
Result<bool> run_postgres_migrations(PostgresConnection& connection, Migrations migrations,
                                     const std::filesystem::path& backup_folder) {
  // If two servers start at the same time, one waits here, and then finds the schema migrated.
  MUSTER_CHECK(
      connection.execute("SET LOCAL lock_timeout = 0; SET LOCAL statement_timeout = 0;"
                         "SELECT pg_advisory_xact_lock(1297437524)"));
  MUSTER_TRY(const int found, schema_version(connection));
  if (found >= version_of(migrations)) return true;
  if (found > 0) {
    MUSTER_TRY(const bool is_led, another_session_leads(connection));
    if (is_led) return false;
    MUSTER_CHECK(back_up_postgres(connection, found, backup_folder));
  }
  for (const char* const step : migrations.subspan(static_cast<size_t>(found))) {
    MUSTER_CHECK(connection.execute(step));
  }
  MUSTER_CHECK(connection.execute("UPDATE schema_version SET version = " +
                                  std::to_string(version_of(migrations))));
  return true;
}

}  // namespace

const Migrations kPostgresMigrations(kPostgresSteps);

Result<int> schema_version(PostgresConnection& connection) {
  // Not to_regclass(): in a transaction that waited for another, it may not see the tables yet.
  MUSTER_TRY(const PostgresRows there,
             connection.query("SELECT count(*) FROM pg_class WHERE relname IN ('schema_version',"
                              " 'leader') AND relkind = 'r' AND relnamespace ="
                              " (SELECT oid FROM pg_namespace WHERE nspname = current_schema())"));
  if (there.number(0, 0) < 2) return 0;
  MUSTER_TRY(const PostgresRows version, connection.query("SELECT version FROM schema_version"));
  return version.size() == 0 ? 0 : static_cast<int>(version.number(0, 0));
}

Result<void> migrate(PostgresConnection& connection, Migrations migrations,
                     const std::filesystem::path& backup_folder) {
  MUSTER_TRY(const bool done, migrate_unless_led(connection, migrations, backup_folder));
  if (done) return {};
  return Error{.code = ErrorCode::kConflict,
               .what = "a server of an earlier version uses the database " + connection.url().shown,
               .advice = "stop it first: this release changes the tables"};
}

Result<bool> migrate_unless_led(PostgresConnection& connection, Migrations migrations,
                                const std::filesystem::path& backup_folder) {
  MUSTER_TRY(const int found, schema_version(connection));
  if (found < 0 || found > version_of(migrations)) {
    return unknown_schema("the database " + connection.url().shown, found, version_of(migrations));
  }
  if (found == version_of(migrations)) return true;
  MUSTER_CHECK(connection.execute("BEGIN ISOLATION LEVEL READ COMMITTED"));
  // An index of millions of records takes long. The keepalives notice a lost connection.
  const auto silence = connection.set_silence(std::chrono::milliseconds(-1));
  Result<bool> done = run_postgres_migrations(connection, migrations, backup_folder);
  if (done && *done) {
    const Result<void> committed = connection.execute("COMMIT");
    if (!committed) done = committed.error();
  } else {
    (void)connection.execute("ROLLBACK");
  }
  connection.set_silence(silence);
  return done;
}

namespace {

/// "VALUES (?1, ?2)" or "VALUES ($1, $2)".
std::string insert_into(const Table& table, char sign) {
  std::string values;
  for (size_t i = 1; i <= table.columns.size(); ++i) {
    values += (values.empty() ? "" : ", ") + std::string(1, sign) + std::to_string(i);
  }
  return "INSERT INTO " + table.name + " (" + table.column_list() + ") VALUES (" + values + ")";
}

void bind(SqliteStatement& insert, int i, const TableColumn& column, const PostgresRows& row) {
  if (row.is_null(0, i)) {
    insert.null(i + 1);
  } else if (column.type == TableColumn::Type::kNumber) {
    insert.number(i + 1, row.number(0, i));
  } else if (column.type == TableColumn::Type::kText) {
    insert.text(i + 1, row.bytes(0, i));
  } else {
    insert.blob(i + 1, row.bytes(0, i));
  }
}

Result<void> copy_table(PostgresConnection& from, SqliteDatabase& to, const Table& table) {
  MUSTER_TRY(SqliteStatement insert, to.prepare(insert_into(table, '?')));
  return from.each_row("SELECT " + table.column_list() + " FROM " + table.name + " ORDER BY 1",
                       [&](const PostgresRows& row) {
                         for (size_t i = 0; i < table.columns.size(); ++i) {
                           bind(insert, static_cast<int>(i), table.columns[i], row);
                         }
                         return insert.run();
                       });
}

PostgresParameters parameters_of(const SqliteStatement& row, const Table& table) {
  PostgresParameters parameters;
  for (size_t i = 0; i < table.columns.size(); ++i) {
    const auto column = static_cast<int>(i);
    if (row.is_null(column)) {
      parameters.null();
    } else if (table.columns[i].type == TableColumn::Type::kNumber) {
      parameters.number(row.number(column));
    } else {
      parameters.bytes(row.bytes(column));
    }
  }
  return parameters;
}

Result<void> copy_table(SqliteDatabase& from, PostgresConnection& to, const Table& table) {
  constexpr size_t kRowsATrip = 500;
  const std::string name = "copy_" + table.name;
  const std::string insert = insert_into(table, '$');
  const PostgresConnection::Prepared prepared{.name = name, .sql = insert};
  MUSTER_CHECK(to.prepare({&prepared, 1}));

  std::vector<PostgresStep> steps;
  const auto send = [&]() -> Result<void> {
    const auto sent = to.pipeline(steps);
    steps.clear();
    return sent ? Result<void>() : Result<void>(sent.error());
  };
  MUSTER_CHECK(from.each_row("SELECT " + table.column_list() + " FROM " + table.name,
                             [&](const SqliteStatement& row) -> Result<void> {
                               steps.push_back(
                                   {.statement = name, .parameters = parameters_of(row, table)});
                               return steps.size() < kRowsATrip ? Result<void>() : send();
                             }));
  return send();
}

}  // namespace

Result<void> copy_to_sqlite(PostgresConnection& from, SqliteDatabase& to) {
  MUSTER_TRY(const std::vector<Table> tables, tables_of(to));
  MUSTER_CHECK(to.execute("BEGIN"));
  for (const Table& table : tables) MUSTER_CHECK(copy_table(from, to, table));
  return to.execute("COMMIT");
}

Result<void> copy_to_postgres(SqliteDatabase& from, PostgresConnection& to) {
  MUSTER_TRY(const std::vector<Table> tables, tables_of(from));
  for (const Table& table : tables) MUSTER_CHECK(copy_table(from, to, table));
  return {};
}

}  // namespace muster::store
