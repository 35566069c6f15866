// The data that tests of training learn from.
#pragma once

#include "idx.h"

namespace muster::digits {

/// The digits that lie beside the examples, read once.
inline const Dataset& digits() {
  static const Dataset kData = *load_dataset(DIGITS_DATA);
  return kData;
}

}  // namespace muster::digits
