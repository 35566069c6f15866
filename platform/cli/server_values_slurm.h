// How single values that are about Slurm are read. One that cannot be read leaves what was there,
// and a fault.
//
// Pure; for server_keys_slurm.cc alone.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "cli/server_keys.h"

namespace muster::cli {

/// unix:///SOCKET, http[s]://HOST[:PORT][/PREFIX] without anything that is secret in it, or "auto".
/// The rest is the engine's to judge.
void read_rest_url(const KeyValue& value, std::string& target);
/// The name of an account, a QOS, a user.
void read_slurm_name(const KeyValue& value, std::string& target);
/// Several, as a list or with commas.
void read_slurm_names(const KeyValue& value, std::vector<std::string>& target);
/// One name, with "%p" in it.
void read_default_account(const KeyValue& value, std::string& target);
/// HOST[,HOST...][:PORT], or a list of hosts with perhaps ":PORT" as the last.
void read_callback(const KeyValue& value, CallbackAddress& target);
/// An address of this machine.
void read_bind_address(const KeyValue& value, std::string& target);
void read_sharing(const KeyValue& value, std::string& target);
/// A path of the nodes, from the root, that a script can name as it is.
void read_node_path(const KeyValue& value, std::string& target);
/// A map from projects to accounts, or "vision=lab1,speech=lab2".
void read_accounts(const KeyValue& value, std::map<std::string, std::string>& target);
/// A list of options of sbatch, but for those that Muster sets itself.
void read_sbatch_options(const KeyValue& value, std::vector<std::string>& target);

}  // namespace muster::cli
