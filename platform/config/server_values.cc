#include "config/server_values.h"

#include <arpa/inet.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <functional>
#include <limits>
#include <utility>

#include "base/text.h"
#include "base/units.h"
#include "job/checker.h"
#include "job/declared_gpus.h"
#include "record/field.h"

namespace muster::config {

namespace {

using std::chrono::milliseconds;

constexpr int64_t kLeastSize = 1 << 10;

bool is_flag(const KeyValue& value) {
  return value.input.path.text().starts_with("--");
}

bool is_variable(const KeyValue& value) {
  return value.input.path.text().starts_with("MUSTER_");
}

std::optional<std::string> text_of(const KeyValue& value) {
  return record::read_text(value.input);
}

std::optional<milliseconds> time_of(const KeyValue& value) {
  const auto text = text_of(value);
  if (!text) return std::nullopt;
  const auto parsed = base::parse_duration(*text);
  if (parsed) return *parsed;
  add_fault(value, parsed.error().what);
  return std::nullopt;
}

std::optional<int> count_of(const KeyValue& value) {
  const auto number = record::read_integer(value.input, 0, std::numeric_limits<int>::max());
  return number ? std::optional(static_cast<int>(*number)) : std::nullopt;
}

std::optional<double> number_of(const KeyValue& value, const char* example) {
  const auto text = text_of(value);
  if (!text) return std::nullopt;
  const auto number = base::number_of<double>(*text);
  if (number && std::isfinite(*number) && *number >= 0) return number;
  add_fault(value, "'" + *text + "' is not a number such as " + example);
  return std::nullopt;
}

void read_word(const KeyValue& value, const std::vector<std::string>& words, std::string& target) {
  if (const auto index = record::read_choice(value.input, words)) target = words[*index];
}

bool is_port(std::string_view text) {
  const auto port = base::number_of<int>(text);
  return port && *port >= 0 && *port <= 65535;
}

bool is_address4(const std::string& text) {
  in_addr address{};
  return ::inet_pton(AF_INET, text.c_str(), &address) == 1;
}

/// ADDRESS or ADDRESS/BITS.
bool is_network4(const std::string& text) {
  constexpr int kMostBits = 32;
  const size_t slash = text.find('/');
  if (slash == std::string::npos) return is_address4(text);
  const auto bits = base::number_of<int>(std::string_view(text).substr(slash + 1));
  return bits && *bits >= 0 && *bits <= kMostBits && is_address4(text.substr(0, slash));
}

/// Whether a URL contains a password: "//user:password@" or "?password=".
bool holds_password(const std::string& url) {
  const size_t begin = url.find("://") + 3;
  const std::string_view authority(url.data() + begin,
                                   std::min(url.find_first_of("/?", begin), url.size()) - begin);
  const size_t at = authority.rfind('@');
  const bool in_user =
      at != std::string_view::npos && authority.substr(0, at).find(':') != std::string_view::npos;
  return in_user || url.find("?password=") != std::string::npos ||
         url.find("&password=") != std::string::npos;
}

bool is_url(const std::string& text) {
  return text.starts_with("postgres://") || text.starts_with("postgresql://");
}

/// "[/bin/echo, hi]"
std::string list_text(std::vector<std::string> words) {
  std::erase(words, "");
  return "[" + base::joined(words, ", ") + "]";
}

/// Node names appear in commands and in labels.
bool is_host_name(std::string_view name) {
  constexpr size_t kMost = 63;
  const auto fits = [](char letter) {
    return (letter >= 'a' && letter <= 'z') || (letter >= 'A' && letter <= 'Z') ||
           (letter >= '0' && letter <= '9') || letter == '-' || letter == '.' || letter == '_';
  };
  return !name.empty() && name.size() <= kMost && name.front() != '-' && name.front() != '.' &&
         std::all_of(name.begin(), name.end(), fits);
}

void add_host(const record::Input& at, const std::string& name, const std::string& url,
              std::map<std::string, std::string>& target) {
  if (!is_host_name(name) || url.empty()) {
    at.note("'" + name + (url.empty() ? "" : "=" + url) +
            "' is not NAME=URL, as in gpu-1=ssh://ada@gpu-1");
  } else if (!target.emplace(name, url).second) {
    at.note("names '" + name + "' twice");
  }
}

}  // namespace

void add_fault(const KeyValue& value, std::string what) {
  value.input.note(std::move(what));
}

std::vector<std::string> texts_of(const KeyValue& value) {
  std::vector<std::string> texts;
  record::texts_type()->read(value.input, &texts);
  return texts;
}

void read_named_values(const KeyValue& value, const AddNamed& add) {
  if (value.input.value.is_null()) return;
  if (value.input.value.is_object()) {
    return record::read_pairs(value.input, [&](const std::string& name, const record::Input& at) {
      if (const auto text = record::read_text(at)) add(at, name, *text);
    });
  }
  const auto text = text_of(value);
  if (!text) return;
  for (const std::string& entry : base::split(*text, ',')) {
    const size_t equals = std::min(entry.find('='), entry.size());
    add(value.input, entry.substr(0, equals), entry.substr(std::min(equals + 1, entry.size())));
  }
}

void read_text(const KeyValue& value, std::string& target) {
  target = text_of(value).value_or(target);
}

void read_filled_text(const KeyValue& value, std::string& target) {
  const auto text = text_of(value);
  if (!text) return;
  if (text->empty()) return add_fault(value, "is empty");
  target = *text;
}

void read_declared_gpus(const KeyValue& value, std::string& target) {
  const auto text = text_of(value);
  if (!text) return;
  const auto parsed = text->empty() ? job::DeclaredGpus{} : job::parse_declared_gpus(*text);
  if (parsed) {
    target = *text;
    return;
  }
  for (const base::Fault& fault : parsed.error().faults) {
    add_fault(value, fault.what + "; " + parsed.error().advice);
  }
}

void read_pool(const KeyValue& value, std::string& target) {
  const auto text = text_of(value);
  if (!text) return;
  if (text->empty()) return add_fault(value, "is empty");
  if (!job::is_token(*text)) {
    return add_fault(value, "'" + *text + "' is not the name of a node pool, such as default");
  }
  target = *text;
}

void read_network(const KeyValue& value, std::string& target) {
  const auto text = text_of(value);
  if (!text) return;
  if (text->find('/') == std::string::npos || !is_network4(*text)) {
    return add_fault(value, "'" + *text + "' is not a network such as 10.0.0.0/16");
  }
  target = *text;
}

void read_networks(const KeyValue& value, std::vector<std::string>& target) {
  read_names(value, target);
  for (const std::string& text : target) {
    if (is_network4(text)) continue;
    add_fault(value, "'" + text + "' is not a network such as 10.0.0.0/16, nor an address");
  }
}

void read_addresses(const KeyValue& value, std::vector<std::string>& target) {
  read_names(value, target);
  for (const std::string& text : target) {
    if (!is_address4(text)) add_fault(value, "'" + text + "' is not an address such as 10.0.0.2");
  }
}

void read_path(const KeyValue& value, std::optional<std::filesystem::path>& target) {
  const auto text = text_of(value);
  if (!text) return;
  if (text->empty()) return add_fault(value, "is empty");
  target = (value.folder / *text).lexically_normal();
}

void read_folders(const KeyValue& value, std::vector<std::string>& target) {
  std::vector<std::string> folders;
  read_names(value, folders);
  for (std::string& folder : folders) folder = (value.folder / folder).lexically_normal().string();
  target = std::move(folders);
}

void read_names(const KeyValue& value, std::vector<std::string>& target) {
  target.clear();
  for (const std::string& entry : texts_of(value)) {
    for (std::string& name : base::split(entry, ',')) {
      if (name.empty()) {
        add_fault(value, "has an empty name");
      } else {
        target.push_back(std::move(name));
      }
    }
  }
}

void read_command(const KeyValue& value, std::vector<std::string>& target) {
  std::vector<std::string> words = texts_of(value);
  // A program's path may hold blanks only as an element of a list: in one text they are arguments.
  if (!value.input.value.is_list() && words.size() == 1 &&
      words.front().find(' ') != std::string::npos) {
    return add_fault(value, "'" + words.front() + "' is one text; give a list, as in " +
                                list_text(base::split(words.front(), ' ')));
  }
  if (!words.empty() && !words.front().starts_with('/')) {
    return add_fault(value, "'" + words.front() + "' is not an absolute path");
  }
  target = std::move(words);
}

void read_store(const KeyValue& value, std::string& target) {
  const auto text = text_of(value);
  if (!text) return;
  if (text->empty()) return add_fault(value, "is empty");
  if (!is_url(*text)) {
    if (text->find("://") != std::string::npos) {
      return add_fault(value, "is not a supported database; give a file or postgres://...");
    }
    // A server that a command starts has another working folder than the command.
    if (is_variable(value) && !text->starts_with('/')) {
      return add_fault(value, "'" + *text + "' is a relative path; give an absolute path");
    }
    target = (value.folder / *text).lexically_normal().string();
    return;
  }
  if (is_flag(value) && holds_password(*text)) {
    return add_fault(value,
                     "contains a password, which other users of this machine could read; use "
                     "--store-password-file, ~/.pgpass or $MUSTER_STORE");
  }
  target = *text;
}

void read_listen(const KeyValue& value, std::string& target) {
  const auto text = text_of(value);
  if (!text) return;
  const size_t colon = std::min(text->rfind(':'), text->size());
  const std::string_view host = std::string_view(*text).substr(0, colon);
  const std::string_view port = std::string_view(*text).substr(std::min(colon + 1, text->size()));
  const bool is_six = host.starts_with('[') && host.ends_with(']');
  if (host.empty() || (!is_six && host.find(':') != std::string_view::npos) || !is_port(port)) {
    return add_fault(value, "'" + *text + "' is not HOST:PORT, as in 0.0.0.0:7443 or [::]:7443");
  }
  target = *text;
}

void read_switch(const KeyValue& value, bool& target) {
  target = record::read_flag(value.input).value_or(target);
}

void read_time(const KeyValue& value, milliseconds& target) {
  target = time_of(value).value_or(target);
}

void read_some_time(const KeyValue& value, milliseconds& target) {
  const auto time = time_of(value);
  if (!time) return;
  if (time->count() == 0) return add_fault(value, "is 0; give a longer time");
  target = *time;
}

void read_seconds(const KeyValue& value, milliseconds& target) {
  const auto time = time_of(value);
  if (!time) return;
  if (*time < std::chrono::seconds(1)) return add_fault(value, "is less than a second");
  target = *time;
}

void read_maybe_time(const KeyValue& value, std::optional<milliseconds>& target) {
  if (const auto time = time_of(value)) target = time;
}

void read_time_or_never(const KeyValue& value, std::optional<milliseconds>& target) {
  if (value.input.is_typed("never")) {
    target = std::nullopt;
  } else {
    read_maybe_time(value, target);
  }
}

void read_time_or_forever(const KeyValue& value, std::optional<milliseconds>& target) {
  if (value.input.is_typed("forever")) {
    target = std::nullopt;
  } else {
    read_maybe_time(value, target);
  }
}

void read_count_or_all(const KeyValue& value, std::optional<int>& target) {
  if (value.input.is_typed("all")) {
    target = std::nullopt;
  } else if (const auto number = count_of(value)) {
    target = number;
  }
}

void read_size_or_all(const KeyValue& value, std::optional<int64_t>& target) {
  int64_t size = target.value_or(0);
  if (value.input.is_typed("all")) {
    target = std::nullopt;
  } else {
    read_large_size(value, size);
    target = size;
  }
}

void read_rate(const KeyValue& value, double& target) {
  const auto number = number_of(value, "0.5 or 200");
  if (!number) return;
  if (*number == 0) return add_fault(value, "is 0; give more than 0");
  target = *number;
}

void read_decay(const KeyValue& value, double& target) {
  target = number_of(value, "0, 0.5 or 2").value_or(target);
}

void read_positive(const KeyValue& value, int& target) {
  const auto number = count_of(value);
  if (!number) return;
  if (*number == 0) return add_fault(value, "is 0; give 1 or more");
  target = *number;
}

void read_maybe_count(const KeyValue& value, std::optional<int>& target) {
  if (auto number = count_of(value)) target = number;
}

void read_large_size(const KeyValue& value, int64_t& target) {
  const auto text = text_of(value);
  if (!text) return;
  const auto parsed = base::parse_bytes(*text);
  if (!parsed) return add_fault(value, parsed.error().what);
  if (*parsed < kLeastSize) return add_fault(value, "is less than 1Ki");
  target = *parsed;
}

void read_size_or_none(const KeyValue& value, int64_t& target) {
  if (text_of(value) == "0") {
    target = 0;
  } else {
    read_large_size(value, target);
  }
}

void read_size(const KeyValue& value, int64_t& target) {
  constexpr int64_t kMost = 1 << 30;
  const auto text = text_of(value);
  if (!text) return;
  const auto parsed = base::parse_bytes(*text);
  if (!parsed) return add_fault(value, parsed.error().what);
  if (*parsed < kLeastSize || *parsed > kMost)
    return add_fault(value, "is not between 1Ki and 1Gi");
  target = *parsed;
}

void read_engine(const KeyValue& value, std::string& target) {
  read_word(value, {"process", "container", "slurm", "kubernetes"}, target);
}

void read_id_span(const KeyValue& value, std::optional<IdSpan>& target) {
  constexpr int64_t kLeastFirst = 65'536;
  constexpr int64_t kLeastCount = 2 * 65'536;
  // Many programs take ids for signed numbers of 32 bits.
  constexpr int64_t kEnd = int64_t{1} << 31;
  const auto text = text_of(value);
  if (!text) return;
  const size_t colon = std::min(text->find(':'), text->size());
  const auto first = base::number_of<int64_t>(text->substr(0, colon));
  const auto count = base::number_of<int64_t>(text->substr(std::min(colon + 1, text->size())));
  if (!first || !count) {
    return add_fault(value, "'" + *text + "' is not FIRST:COUNT, as in 1879048192:65536000");
  }
  if (*first < kLeastFirst) {
    return add_fault(value, "begins below 65536, where accounts have their ids");
  }
  if (*count < kLeastCount) {
    return add_fault(value, "has fewer than 131072 ids: 65536 for the server and for each user");
  }
  if (*count > kEnd || *first + *count > kEnd) {
    return add_fault(value, "ends beyond 2147483648");
  }
  target = IdSpan{.first = static_cast<uint32_t>(*first), .count = static_cast<uint32_t>(*count)};
}

void read_topology(const KeyValue& value, std::map<std::string, std::string>& target) {
  target.clear();
  read_named_values(
      value, [&](const record::Input& at, const std::string& level, const std::string& domain) {
        if (!job::is_token(level) || !job::is_token(domain)) {
          return at.note("'" + level + (domain.empty() ? "" : "=" + domain) +
                         "' is not LEVEL=DOMAIN, as in rack=r1");
        }
        target[level] = domain;
      });
}

void read_container_hosts(const KeyValue& value, std::map<std::string, std::string>& target) {
  target.clear();
  read_named_values(value, [&](const record::Input& at, const std::string& name,
                               const std::string& url) { add_host(at, name, url, target); });
}

namespace {

/// Reads a map from names to records with a table of fields. `check` validates each record.
template <class Record>
void read_records(const KeyValue& value, std::map<std::string, Record, std::less<>>& target,
                  const std::function<void(const record::Input&, Record&)>& check) {
  target.clear();
  if (value.input.value.is_null()) return;
  record::read_pairs(value.input, [&](const std::string& name, const record::Input& at) {
    Record& record = target[name];
    record::read(at, record);
    check(at, record);
  });
}

}  // namespace

void read_machine_types(const KeyValue& value, job::MachineTypes& target) {
  read_records<job::MachineType>(value, target,
                                 [](const record::Input& at, job::MachineType& type) {
                                   const record::Path gpus(at.path, "gpus");
                                   if (type.resources.gpus < 0)
                                     at.at(at.value, gpus).note("is negative");
                                 });
}

void read_images(const KeyValue& value, job::ImageStandIns& target) {
  read_records<job::ImageStandIn>(
      value, target, [&](const record::Input&, job::ImageStandIn& image) {
        if (image.folder.empty()) return;
        image.folder = (value.folder / image.folder).lexically_normal().string();
      });
}

void read_host_table(const KeyValue& value, std::map<std::string, std::string>& target) {
  target.clear();
  if (!value.input.value.is_null()) record::pairs_type()->read(value.input, &target);
}

}  // namespace muster::config
