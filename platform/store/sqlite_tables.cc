#include "store/sqlite_tables.h"

namespace muster::store {

namespace {

TableColumn::Type type_of(std::string_view declared) {
  if (declared == "INTEGER") return TableColumn::Type::kNumber;
  return declared == "TEXT" ? TableColumn::Type::kText : TableColumn::Type::kBytes;
}

}  // namespace

std::string Table::column_list() const {
  std::string list;
  for (const TableColumn& column : columns) list += (list.empty() ? "" : ", ") + column.name;
  return list;
}

Result<std::vector<Table>> tables_of(SqliteDatabase& database) {
  std::vector<Table> tables;
  MUSTER_CHECK(database.each_row(
      "SELECT t.name, c.name, c.type FROM sqlite_master t, pragma_table_info(t.name) c"
      " WHERE t.type = 'table' AND t.name NOT LIKE 'sqlite%' ORDER BY t.name, c.cid",
      [&](const SqliteStatement& row) -> Result<void> {
        if (tables.empty() || tables.back().name != row.bytes(0)) {
          tables.push_back({.name = std::string(row.bytes(0)), .columns = {}});
        }
        tables.back().columns.push_back(
            {.name = std::string(row.bytes(1)), .type = type_of(row.bytes(2))});
        return {};
      }));
  return tables;
}

}  // namespace muster::store
