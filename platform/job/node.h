// A node as listings show it.
//
// Plain values.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "record/table.h"

namespace muster::job {

/// A GPU of a node, and the jobs that hold it.
struct Device {
  int index = 0;
  std::string model;
  int64_t memory_bytes = 0;       ///< 0: unknown
  int free_milli = 1000;          ///< of 1000
  std::vector<std::string> jobs;  ///< the jobs with tasks on it

  bool operator==(const Device&) const = default;
};

struct Node {
  std::string name;
  std::string pool;
  std::string state;  ///< "ready", "cordoned", "draining" (cordoned, with running jobs), "gone"
  int64_t cpu_milli = 0;
  int64_t cpu_milli_free = 0;
  int64_t memory_bytes = 0;
  int64_t memory_bytes_free = 0;
  std::vector<Device> devices;
  std::vector<std::string> jobs;                ///< the jobs with tasks on the node
  std::map<std::string, std::string> topology;  ///< level -> domain
  std::map<std::string, std::string> labels;

  bool operator==(const Node&) const = default;
};

// The fields of a node and of its devices for the API, one row each (record/table.h).

const record::Table& table_of(const Device*);
const record::Table& table_of(const Node*);

}  // namespace muster::job
