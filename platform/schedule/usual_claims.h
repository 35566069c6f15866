// What is usually asked for: the claims of the gangs submitted so far, the recent ones weighing
// more. The fragmentation term of the placement goes by it.
//
// Pure values; bounded: the rarest claim makes room for a new one.
#pragma once

#include <vector>

#include "schedule/nodes.h"

namespace muster::schedule {

class UsualClaims {
 public:
  void add(const Gang& gang);
  /// Nothing where so little was added since the last time that it is not worth it. Else all of
  /// them, with their weights.
  bool is_worth_telling() const;
  std::vector<UsualClaim> tell();

 private:
  std::vector<UsualClaim> claims_;
  double weight_of_next_ = 1;
  int added_ = 0;  ///< since the last tell()
  int told_ = 0;   ///< how many had been added by then, up to a bound
};

}  // namespace muster::schedule
