#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "base/text.h"
#include "base/units.h"
#include "config/server_values.h"
#include "job/validate.h"

namespace muster::config {

namespace {

/// The engine then searches the usual places of slurmrestd's socket (engine/slurm/open_client.h).
constexpr std::string_view kFindRest = "auto";

std::optional<std::string> filled_text_of(const KeyValue& value) {
  auto text = record::read_text(value.input);
  if (!text || !text->empty()) return text;
  add_fault(value, "is empty");
  return std::nullopt;
}

bool is_letter_or_digit(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

/// A name, an IPv4 address, or an IPv6 address, in brackets if `may_be_bracketed`.
bool is_host(std::string_view text) {
  constexpr size_t kLongest = 253;
  if (text.size() > 2 && text.front() == '[' && text.back() == ']') {
    text = text.substr(1, text.size() - 2);
    return std::all_of(text.begin(), text.end(),
                       [](char c) { return is_letter_or_digit(c) || c == ':' || c == '.'; });
  }
  return !text.empty() && text.size() <= kLongest && is_letter_or_digit(text.front()) &&
         std::all_of(text.begin(), text.end(), [](char c) {
           return is_letter_or_digit(c) || c == '-' || c == '.' || c == '_';
         });
}

std::string without_brackets(const std::string& host) {
  return host.starts_with('[') ? host.substr(1, host.size() - 2) : host;
}

std::optional<uint16_t> port_of(std::string_view text) {
  const auto port = base::number_of<int>(text);
  if (!port || *port < 1 || *port > 65535) return std::nullopt;
  return static_cast<uint16_t>(*port);
}

/// "host:7445" -> "host" and 7445; without a port, the text is not changed.
struct HostAndPort {
  std::string host;
  std::optional<std::string> port;
};

HostAndPort parted(const std::string& text) {
  const size_t bracket = text.rfind(']');
  const size_t colon = text.rfind(':');
  const bool has_port =
      colon != std::string::npos && (bracket == std::string::npos || bracket < colon);
  if (!has_port) return {.host = text, .port = std::nullopt};
  return {.host = text.substr(0, colon), .port = text.substr(colon + 1)};
}

/// http[s]://HOST[:PORT][/PREFIX].
bool is_http_url(const std::string& text) {
  const size_t begin = text.find("://") + 3;
  if (!text.starts_with("http://") && !text.starts_with("https://")) return false;
  const HostAndPort address = parted(text.substr(begin, text.find('/', begin) - begin));
  return is_host(address.host) && (!address.port || port_of(*address.port));
}

bool is_socket(const std::string& text) {
  return text.size() > 1 && (text.front() == '/' || text.starts_with("unix:///"));
}

void add_account(const record::Input& at, const std::string& project, const std::string& account,
                 std::map<std::string, std::string>& target) {
  if (project.empty() || !job::is_slurm_name(account)) {
    at.note("'" + project + (account.empty() ? "" : "=" + account) +
            "' is not PROJECT=ACCOUNT, as in vision=lab1");
  } else if (!target.emplace(project, account).second) {
    at.note("names '" + project + "' twice");
  }
}

/// "exclude" for "--exclude=n7"; "x" for "-x n7".
std::string option_name(const std::string& option) {
  const size_t begin = option.find_first_not_of('-');
  if (begin == std::string::npos) return "";
  return option.substr(begin, option.find_first_of("= ", begin) - begin);
}

/// Options that Muster sets for every Slurm job; another value would break the job.
bool is_set_by_muster(const std::string& name) {
  constexpr std::array<std::string_view, 34> kOurs{"array",       "a",
                                                   "comment",     "error",
                                                   "e",           "export",
                                                   "export-file", "gid",
                                                   "help",        "h",
                                                   "hold",        "H",
                                                   "input",       "i",
                                                   "job-name",    "J",
                                                   "nodes",       "N",
                                                   "ntasks",      "n",
                                                   "output",      "o",
                                                   "open-mode",   "parsable",
                                                   "test-only",   "uid",
                                                   "usage",       "version",
                                                   "V",           "wait",
                                                   "W",           "wrap",
                                                   "chdir",       "ntasks-per-node"};
  return std::find(kOurs.begin(), kOurs.end(), name) != kOurs.end();
}

}  // namespace

void read_rest_url(const KeyValue& value, std::string& target) {
  const auto text = filled_text_of(value);
  if (!text) return;
  // The text before an '@' may be a password, and is not printed.
  if (text->find('@') != std::string::npos) {
    return add_fault(value,
                     "contains a user or a password; set the user with slurm.rest_user, and get a "
                     "token with slurm.token_command");
  }
  if (*text != kFindRest && !is_socket(*text) && !is_http_url(*text)) {
    return add_fault(value, "'" + *text +
                                "' is neither unix:///SOCKET nor http[s]://HOST:PORT, as in "
                                "unix:///run/slurmrestd/slurmrestd.socket, nor auto");
  }
  target = *text;
}

void read_slurm_name(const KeyValue& value, std::string& target) {
  const auto text = filled_text_of(value);
  if (!text) return;
  if (!job::is_slurm_name(*text)) {
    return add_fault(value, "'" + *text + "' is not a name; use letters, digits and _-.+:@");
  }
  target = *text;
}

void read_slurm_names(const KeyValue& value, std::vector<std::string>& target) {
  std::vector<std::string> names;
  read_names(value, names);
  for (const std::string& name : names) {
    if (job::is_slurm_name(name)) continue;
    add_fault(value, "'" + name + "' is not a name; use letters, digits and _-.+:@");
  }
  target = std::move(names);
}

void read_default_account(const KeyValue& value, std::string& target) {
  const auto text = filled_text_of(value);
  if (!text) return;
  std::string example = *text;
  for (size_t at = 0; (at = example.find("%p", at)) != std::string::npos;) {
    example.replace(at, 2, "project");
  }
  if (!job::is_slurm_name(example)) {
    return add_fault(value, "'" + *text +
                                "' is not the name of an account such as lab or proj-%p; use "
                                "letters, digits and _-.+:@");
  }
  target = *text;
}

void read_callback(const KeyValue& value, CallbackAddress& target) {
  std::vector<std::string> entries;
  for (const std::string& text : texts_of(value)) {
    for (std::string& entry : base::split(text, ',')) entries.push_back(std::move(entry));
  }
  if (entries.empty()) return add_fault(value, "is empty");
  CallbackAddress read;
  for (size_t i = 0; i < entries.size(); ++i) {
    const bool is_last = i + 1 == entries.size();
    const HostAndPort entry = is_last ? parted(entries[i]) : HostAndPort{entries[i], std::nullopt};
    const auto port = entry.port ? port_of(*entry.port) : std::nullopt;
    const bool is_port_alone = entry.port && entry.host.empty();
    if ((entry.port && !port) || (!is_port_alone && !is_host(entry.host))) {
      return add_fault(value, "'" + entries[i] + "' is not HOST or HOST:PORT, as in head:7445" +
                                  (is_last ? "" : "; the port follows the last host"));
    }
    if (port) read.port = *port;
    if (!is_port_alone) read.hosts.push_back(without_brackets(entry.host));
  }
  target = std::move(read);
}

void read_bind_address(const KeyValue& value, std::string& target) {
  const auto text = filled_text_of(value);
  if (!text) return;
  const bool is_address = std::all_of(text->begin(), text->end(), [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F') || c == '.' ||
           c == ':';
  });
  if (!is_address) {
    return add_fault(value, "'" + *text + "' is not an address of this machine, as in 10.0.0.1");
  }
  target = *text;
}

void read_sharing(const KeyValue& value, NodeSharing& target) {
  const auto text = filled_text_of(value);
  if (!text) return;
  // In YAML, yes and true are the same, and so are no and false.
  const std::string_view word = *text == "true" ? "yes" : *text == "false" ? "no" : *text;
  const auto words = words_of(NodeSharing());
  const auto* const found = std::find(words.begin(), words.end(), word);
  if (found == words.end()) return add_fault(value, "'" + *text + "' is neither auto, yes nor no");
  target = static_cast<NodeSharing>(found - words.begin());
}

void read_node_path(const KeyValue& value, std::string& target) {
  const auto text = filled_text_of(value);
  if (!text) return;
  const bool is_plain = std::all_of(text->begin(), text->end(), [](char c) {
    return is_letter_or_digit(c) || std::string_view("/_-.+:@%,=").find(c) != std::string::npos;
  });
  if (!text->starts_with('/') || !is_plain) {
    return add_fault(
        value,
        "'" + *text + "' is not an absolute path on the nodes; use letters, digits and /_-.+:@%,=");
  }
  target = *text;
}

void read_accounts(const KeyValue& value, std::map<std::string, std::string>& target) {
  target.clear();
  if (value.input.is_typed("")) return add_fault(value, "is empty");
  read_named_values(
      value, [&](const record::Input& at, const std::string& project, const std::string& account) {
        add_account(at, project, account, target);
      });
}

void read_sbatch_options(const KeyValue& value, std::vector<std::string>& target) {
  std::vector<std::string> options = texts_of(value);
  for (const std::string& option : options) {
    const std::string name = option_name(option);
    const bool is_shown = std::all_of(option.begin(), option.end(),
                                      [](char c) { return c >= ' ' && c <= '~' && c != '#'; });
    if (!option.starts_with('-') || name.empty() || !is_shown) {
      add_fault(value, "'" + base::shortened(option) +
                           "' is not an option of sbatch, as in "
                           "--exclude=n7");
    } else if (is_set_by_muster(name)) {
      add_fault(value, "'" + option + "' is an option that Muster sets itself for each job");
    }
  }
  target = std::move(options);
}

}  // namespace muster::config
