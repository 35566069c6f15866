// The schemas of the OpenAPI document, made from tables.
//
// Every table and every enumeration is a schema of its own, which others refer to by its name.
#pragma once

#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "record/type.h"

namespace muster::record {

class Schemas {
 public:
  Schemas();
  ~Schemas();
  Schemas(const Schemas&) = delete;
  Schemas& operator=(const Schemas&) = delete;

  /// With everything that it refers to.
  void add(const Table& table);
  /// {"LIST": [...]}, of records of `table`; `help` says in which order they are.
  void add_list(const std::string& name, const char* list, const Table& table,
                const char* help = "");
  bool has(std::string_view name) const;
  void set(const std::string& name, Schema schema);
  /// By name, in the order in which they were added.
  const Schema& all() const { return *all_; }

 private:
  std::unique_ptr<Schema> all_;
};

}  // namespace muster::record
