// Ties a key of the configuration to the option that it sets.
//
// Pure; for server_keys.cc and its neighbours alone.
#pragma once

#include <type_traits>
#include <vector>

#include "cli/server_keys.h"

namespace muster::cli {

using ServerKeys = std::vector<ServerKey>;

template <class Value>
ServerKey key(ServerKey about, Value ServeOptions::* member,
              void (*read)(const KeyValue&, std::type_identity_t<Value>&)) {
  about.read = [member, read](const KeyValue& value, ServeOptions& options) {
    read(value, options.*member);
  };
  about.same = [member](const ServeOptions& a, const ServeOptions& b) {
    return a.*member == b.*member;
  };
  about.copy = [member](const ServeOptions& from, ServeOptions& to) { to.*member = from.*member; };
  return about;
}

/// How a server runs jobs on Slurm (server_keys_slurm.cc).
ServerKeys slurm_server_keys();

}  // namespace muster::cli
