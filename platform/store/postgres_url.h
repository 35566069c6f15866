// Where a PostgreSQL database is: what is passed on to libpq, and what may be shown of it.
//
// Pure but for libpq, which parse() loads, and its defaults: it reads its PG* variables.
#pragma once

#include <string>

#include "base/result.h"

namespace muster::store {

struct PostgresUrl {
  std::string text;      ///< as it was given; may hold the password
  std::string shown;     ///< "postgres://ada@host:5432/muster": without password and options
  std::string password;  ///< to be blotted out of what others say

  /// kInvalid; kUnavailable where there is no libpq. The error repeats nothing of the URL, for any
  /// part of it may be the password.
  static base::Result<PostgresUrl> parse(const std::string& text);

  /// `message` with every occurrence of the password replaced.
  std::string without_password(std::string message) const;
};

}  // namespace muster::store
