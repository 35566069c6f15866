// Readers of the values of the server's keys: one function for each kind of value, and key(), which
// binds a key to its option. An invalid value is reported as a fault and does not change the
// option. Two keys are tables, of machine types and of stand-ins for images:
//
//   machine_types:
//     p3.2xlarge: {gpus: 1, gpu_model: V100, cpus: 8, memory: 61G}
//   images:
//     gcr.io/run-ai-demo/quickstart-distributed:
//       command: [/opt/quickstart/run.sh]     # or a text, which sh -c runs
//       folder: /opt/quickstart
//       environment: {DATA: /data}
//
// Pure. Only for server_keys*.cc.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

#include "config/server_keys.h"
#include "job/machine_type.h"

namespace muster::config {

/// Reports a fault of a value.
void add_fault(const KeyValue& value, std::string what);

/// A list of texts, or a single text.
std::vector<std::string> texts_of(const KeyValue& value);

using AddNamed =
    std::function<void(const record::Input& at, const std::string& name, const std::string& value)>;
/// Calls back with each entry of a map, or of "NAME=VALUE,..." in one text. Null has no entries.
void read_named_values(const KeyValue& value, const AddNamed& add);

void read_text(const KeyValue& value, std::string& target);
void read_filled_text(const KeyValue& value, std::string& target);
void read_path(const KeyValue& value, std::optional<std::filesystem::path>& target);
/// A list of paths, or "a,b". Relative paths become absolute.
void read_folders(const KeyValue& value, std::vector<std::string>& target);
/// A list, or "a,b".
void read_names(const KeyValue& value, std::vector<std::string>& target);
/// A list: a program's absolute path, then its arguments.
void read_command(const KeyValue& value, std::vector<std::string>& target);
/// A file, or the URL of a database; a flag must not contain a password.
void read_store(const KeyValue& value, std::string& target);
/// N[:MODEL[:MEMORY]], or nothing.
void read_declared_gpus(const KeyValue& value, std::string& target);
/// The name of a node pool.
void read_pool(const KeyValue& value, std::string& target);
/// ADDRESS/BITS of IPv4.
void read_network(const KeyValue& value, std::string& target);
/// A list of IPv4 networks or addresses, or "a,b".
void read_networks(const KeyValue& value, std::vector<std::string>& target);
/// A list of IPv4 addresses, or "a,b".
void read_addresses(const KeyValue& value, std::vector<std::string>& target);
/// HOST:PORT; an IPv6 address in brackets.
void read_listen(const KeyValue& value, std::string& target);
void read_switch(const KeyValue& value, bool& target);

void read_time(const KeyValue& value, std::chrono::milliseconds& target);
void read_some_time(const KeyValue& value, std::chrono::milliseconds& target);  ///< greater than 0
void read_seconds(const KeyValue& value, std::chrono::milliseconds& target);    ///< 1s or more
void read_maybe_time(const KeyValue& value, std::optional<std::chrono::milliseconds>& target);
void read_time_or_never(const KeyValue& value, std::optional<std::chrono::milliseconds>& target);

void read_rate(const KeyValue& value, double& target);   ///< greater than 0
void read_decay(const KeyValue& value, double& target);  ///< 0 or more
void read_positive(const KeyValue& value, int& target);
void read_maybe_count(const KeyValue& value, std::optional<int>& target);
void read_size(const KeyValue& value, int64_t& target);          ///< 1Ki to 1Gi
void read_large_size(const KeyValue& value, int64_t& target);    ///< 1Ki or more
void read_size_or_none(const KeyValue& value, int64_t& target);  ///< 0, or 1Ki or more

// Optional limits: "forever" and "all" remove them.
void read_time_or_forever(const KeyValue& value, std::optional<std::chrono::milliseconds>& target);
void read_count_or_all(const KeyValue& value, std::optional<int>& target);
void read_size_or_all(const KeyValue& value, std::optional<int64_t>& target);

void read_engine(const KeyValue& value, std::string& target);
void read_id_span(const KeyValue& value, std::optional<IdSpan>& target);
/// A map of levels, or "rack=r1,block=b1".
void read_topology(const KeyValue& value, std::map<std::string, std::string>& target);
/// A map from names to URLs, or "gpu-1=ssh://gpu-1,gpu-2=ssh://gpu-2". The engine checks the URLs.
void read_container_hosts(const KeyValue& value, std::map<std::string, std::string>& target);

void read_machine_types(const KeyValue& value, job::MachineTypes& target);
void read_images(const KeyValue& value, job::ImageStandIns& target);
/// A map from hosts to texts.
void read_host_table(const KeyValue& value, std::map<std::string, std::string>& target);

/// unix:///SOCKET, http[s]://HOST[:PORT][/PREFIX] without a password, or "auto". The engine checks
/// the rest.
void read_rest_url(const KeyValue& value, std::string& target);
/// The name of an account, a QOS or a user.
void read_slurm_name(const KeyValue& value, std::string& target);
/// Several names, as a list or separated by commas.
void read_slurm_names(const KeyValue& value, std::vector<std::string>& target);
/// One name, which may contain "%p".
void read_default_account(const KeyValue& value, std::string& target);
/// HOST[,HOST...][:PORT], or a list of hosts whose last entry may be ":PORT".
void read_callback(const KeyValue& value, CallbackAddress& target);
/// An address of this machine.
void read_bind_address(const KeyValue& value, std::string& target);
void read_sharing(const KeyValue& value, NodeSharing& target);
/// An absolute path on the nodes that is safe in a shell script.
void read_node_path(const KeyValue& value, std::string& target);
/// A map from projects to accounts, or "vision=lab1,speech=lab2".
void read_accounts(const KeyValue& value, std::map<std::string, std::string>& target);
/// A list of options of sbatch, without those that Muster sets itself.
void read_sbatch_options(const KeyValue& value, std::vector<std::string>& target);

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

/// The words of words_of(Choice()).
template <class Choice>
std::vector<std::string> choices_of() {
  const auto words = words_of(Choice());
  return {words.begin(), words.end()};
}

template <class Choice>
void read_one_of(const KeyValue& value, Choice& target) {
  const auto index = record::read_choice(value.input, choices_of<Choice>());
  if (index) target = static_cast<Choice>(*index);
}

/// A key whose value is one of a few words (choices.h).
template <class Choice>
ServerKey choice(ServerKey about, Choice ServeOptions::* member) {
  about.choices = choices_of<Choice>();
  return key(std::move(about), member, read_one_of<Choice>);
}

/// The keys for Slurm (server_keys_slurm.cc).
ServerKeys slurm_server_keys();
/// The keys for Kubernetes (server_keys_kubernetes.cc).
ServerKeys kubernetes_server_keys();

}  // namespace muster::config
