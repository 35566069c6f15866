// What is wrong with a subscription that somebody wants, but for its address.
//
// Pure; thread-safe.
#pragma once

#include <vector>

#include "base/error.h"
#include "notify/notifications.h"

namespace muster::notify {

/// Every fault, each with its field.
std::vector<base::Fault> faults_of(const Wish& wish);

}  // namespace muster::notify
