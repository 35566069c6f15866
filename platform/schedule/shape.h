// Gangs that ask for the same have one shape: what one of them cannot have, the others cannot
// either. So a hundred thousand waiting gangs cost as much as the few shapes among them.
//
// Not thread-safe.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>

#include "schedule/model.h"

namespace muster::schedule {

class ShapeTable {
 public:
  /// The number of the gang's shape, from 1: all of the gang but its id, name, project, priority
  /// and times. To be given back by drop().
  uint64_t take(const Gang& gang);
  void drop(uint64_t shape);

 private:
  struct Shape {
    uint64_t number = 0;
    int gangs = 0;
  };
  std::unordered_map<std::string, Shape> shapes_;
  std::unordered_map<uint64_t, std::string> names_;
  uint64_t next_ = 1;
};

}  // namespace muster::schedule
