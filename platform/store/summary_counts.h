// Which tables a summary counts, whichever the database.
//
// Pure.
#pragma once

#include <array>
#include <cstdint>
#include <utility>

#include "store/maintenance.h"

namespace muster::store {

using TableCount = std::pair<const char*, uint64_t*>;

/// A table, and where in `summary` its number of rows goes.
inline std::array<TableCount, 9> counts_in(StoreSummary& summary) {
  return {{{"job", &summary.jobs},
           {"project", &summary.projects},
           {"account", &summary.users},
           {"token", &summary.tokens},
           {"secret", &summary.secrets},
           {"subscription", &summary.subscriptions},
           {"delivery", &summary.deliveries},
           {"audit", &summary.audit_records},
           {"set_aside", &summary.set_aside}}};
}

}  // namespace muster::store
