// A machine that takes tasks, as a listing shows it.
//
// Plain values.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "record/table.h"

namespace muster::job {

/// One GPU of a node and who holds it.
struct Device {
  int index = 0;
  std::string model;
  int64_t memory_bytes = 0;       ///< 0: unknown
  int free_milli = 1000;          ///< of 1000
  std::vector<std::string> jobs;  ///< whose tasks are on it

  bool operator==(const Device&) const = default;
};

struct Node {
  std::string name;
  std::string pool;
  std::string
      state;  ///< "ready", "cordoned", "draining" (cordoned, and something still runs), "gone"
  int64_t cpu_milli = 0;
  int64_t cpu_milli_free = 0;
  int64_t memory_bytes = 0;
  int64_t memory_bytes_free = 0;
  std::vector<Device> devices;
  std::vector<std::string> jobs;                ///< that have a task there
  std::map<std::string, std::string> topology;  ///< level -> domain
  std::map<std::string, std::string> labels;

  bool operator==(const Node&) const = default;
};

// The fields of a node and of its devices, one row each (record/table.h), as the API lists them.

const record::Table& table_of(const Device*);
const record::Table& table_of(const Node*);

}  // namespace muster::job
