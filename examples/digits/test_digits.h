// The data of the tests of training.
#pragma once

#include "idx.h"

namespace muster::digits {

/// The digits in the folder of the examples, read once.
inline const Dataset& digits() {
  static const Dataset kData = *load_dataset(DIGITS_DATA);
  return kData;
}

}  // namespace muster::digits
