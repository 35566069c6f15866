// The faults of an input as short texts that a test compares.
#pragma once

#include <string>
#include <vector>

#include "base/error.h"
#include "base/result.h"

namespace muster::base {

using Texts = std::vector<std::string>;

/// Each fault as "field what".
inline Texts texts_of(const std::vector<Fault>& faults) {
  Texts texts;
  for (const Fault& fault : faults) texts.push_back(fault.field + " " + fault.what);
  return texts;
}

/// The faults, or the error itself if it has none.
template <class T>
Texts faults_of(const Result<T>& result) {
  if (result) return {"no error"};
  const Error& error = result.error();
  return error.faults.empty() ? std::vector{error.what} : texts_of(error.faults);
}

}  // namespace muster::base
