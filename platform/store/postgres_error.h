// What PostgreSQL's SQLSTATEs mean to the store.
//
// Pure.
#pragma once

#include <string>
#include <string_view>

#include "base/error.h"

namespace muster::store {

/// `database` is how it is shown, `message` what the server said.
base::Error postgres_error(const std::string& database, std::string_view sqlstate,
                           const std::string& message);

/// Whether the server ends the session with it.
bool ends_the_session(std::string_view sqlstate);

}  // namespace muster::store
