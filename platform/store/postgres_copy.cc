#include "store/postgres_copy.h"

#include "store/sqlite_tables.h"

namespace muster::store {

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
  const PostgresConnection::Prepared prepared{.name = name.c_str(), .sql = insert.c_str()};
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
