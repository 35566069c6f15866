// Host names of the cluster in the texts of a job, which get the names that the job's tasks have here.
#include <algorithm>
#include <functional>
#include <utility>

#include "base/text.h"
#include "dialects/kubernetes/assembly.h"

namespace muster::dialects::kubernetes {

namespace {

void change_texts(job::JobSpec& spec, const std::function<void(std::string&)>& change) {
  const auto change_words = [&](std::vector<std::string>& words) {
    for (std::string& word : words) change(word);
  };
  const auto change_values = [&](std::map<std::string, std::string>& variables) {
    for (auto& [name, value] : variables) change(value);
  };
  change_words(spec.command);
  change_words(spec.arguments);
  change_words(spec.worker_command);
  change_values(spec.environment);
  for (job::RoleSpec* role : {&spec.leader, &spec.parameter_server, &spec.evaluator}) {
    change_words(role->command);
    change_words(role->arguments);
    change_values(role->environment);
  }
  for (job::PodContainer& container : spec.kubernetes.containers) {
    change_words(container.command);
    change_words(container.arguments);
    change_values(container.environment);
  }
}

bool is_of_a_host(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-';
}

/// The length of ".DOMAIN" at the front of `text`, or 0.
size_t domain_length(std::string_view text, std::string_view domain) {
  if (domain.empty() || !text.starts_with('.') || !text.substr(1).starts_with(domain)) return 0;
  const size_t length = domain.size() + 1;
  return length < text.size() && is_of_a_host(text[length]) ? 0 : length;
}

class HostReplacing {
 public:
  HostReplacing(const std::map<std::string, std::string>& hosts, const std::string& domain,
                const std::string& space, bool needs_domain)
      : hosts_(hosts), domain_(domain), space_(space), needs_domain_(needs_domain) {}

  void replace_in(std::string& text) const {
    std::string result;
    size_t at = 0;
    while (at < text.size()) {
      const bool begins = is_of_a_host(text[at]) && (at == 0 || !is_in_name(text[at - 1]));
      if (!begins) {
        result += text[at++];
        continue;
      }
      size_t end = at;
      while (end < text.size() && is_of_a_host(text[end])) ++end;
      const auto found = hosts_.find(text.substr(at, end - at));
      const size_t after = found == hosts_.end() ? 0 : domains_after(text, end);
      if (found == hosts_.end() || (needs_domain_ && after == 0)) {
        result.append(text, at, end - at);
      } else {
        result += found->second;
        end += after;
      }
      at = end;
    }
    text = std::move(result);
  }

 private:
  static bool is_in_name(char c) { return is_of_a_host(c) || c == '.' || c == '_'; }

  size_t domains_after(const std::string& text, size_t end) const {
    const std::string_view rest = std::string_view(text).substr(end);
    size_t length = domain_length(rest, domain_);
    if (length == 0) return 0;
    length += namespace_length(rest.substr(length));
    length += domain_length(rest.substr(length), "svc");
    return length + domain_length(rest.substr(length), "cluster.local");
  }

  /// The length of ".NAMESPACE": the job's own, or any before ".svc".
  size_t namespace_length(std::string_view text) const {
    if (const size_t own = domain_length(text, space_.empty() ? "default" : space_)) return own;
    if (!text.starts_with('.')) return 0;
    size_t end = 1;
    while (end < text.size() && is_of_a_host(text[end])) ++end;
    return domain_length(text.substr(end), "svc") > 0 ? end : 0;
  }

  const std::map<std::string, std::string>& hosts_;
  const std::string& domain_;
  const std::string& space_;
  bool needs_domain_;
};

}  // namespace

void replace_hosts(const std::map<std::string, std::string>& hosts, const Metadata& metadata,
                   const std::string& domain, bool needs_domain, job::JobSpec& spec) {
  // Without a name, the keys of `hosts` are bare endings such as "-launcher", which is also a flag of
  // mpirun.
  if (metadata.file_name.empty()) return;
  const HostReplacing replacing(hosts, domain, metadata.space, needs_domain);
  change_texts(spec, [&](std::string& text) { replacing.replace_in(text); });
}

void replace_everywhere(const std::string& text, const std::string& by, job::JobSpec& spec) {
  change_texts(spec, [&](std::string& in) {
    for (size_t at = in.find(text); at != std::string::npos; at = in.find(text, at + by.size())) {
      in.replace(at, text.size(), by);
    }
  });
}

}  // namespace muster::dialects::kubernetes
