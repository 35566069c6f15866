#include "engine/container/options.h"

#include <algorithm>
#include <utility>

#include "base/files.h"
#include "base/random.h"

namespace muster::engine {

using base::Error;
using base::ErrorCode;
using base::Fault;

namespace {

std::string text_for(const std::map<std::string, std::string>& texts, const std::string& name) {
  const auto found = texts.find(name);
  return found == texts.end() ? "" : found->second;
}

void add_fault(std::vector<Fault>& faults, const std::string& field, const Error& error) {
  faults.push_back({.field = field, .what = error.what});
  for (const Fault& each : error.faults) {
    faults.push_back({.field = field, .what = each.field + " " + each.what});
  }
  if (!error.advice.empty()) faults.push_back({.field = field, .what = error.advice});
}

void read_gpus(const std::string& text, const std::string& field, ContainerHostOptions& host,
               std::vector<Fault>& faults) {
  if (text.empty()) return;
  const auto gpus = parse_declared_gpus(text);
  if (!gpus) return add_fault(faults, field, gpus.error());
  host.declared_gpus = *gpus;
}

/// A socket of this machine does not show at which address other hosts reach it.
bool needs_address(const ContainerHostOptions& host) {
  return host.address.empty() && std::holds_alternative<UnixEndpoint>(host.endpoint);
}

Result<std::vector<ContainerHostOptions>> own_host(const HostTexts& texts,
                                                   const Surroundings& here) {
  MUSTER_TRY(Endpoint endpoint, find_endpoint(here));
  ContainerHostOptions host{.name = texts.own_name, .endpoint = std::move(endpoint), .address = {}};
  if (!texts.own_gpus.empty()) {
    MUSTER_TRY(host.declared_gpus, parse_declared_gpus(texts.own_gpus));
  }
  return std::vector{std::move(host)};
}

}  // namespace

Result<std::vector<ContainerHostOptions>> read_hosts(const HostTexts& texts,
                                                     const Surroundings& here) {
  if (texts.endpoints.empty()) return own_host(texts, here);
  std::vector<ContainerHostOptions> hosts;
  std::vector<Fault> faults;
  for (const auto& [name, url] : texts.endpoints) {
    ContainerHostOptions host{
        .name = name, .endpoint = {}, .address = text_for(texts.addresses, name)};
    read_gpus(text_for(texts.gpus, name), "host_gpus." + name, host, faults);
    auto endpoint = parse_endpoint(url, texts.certificates);
    if (!endpoint) {
      add_fault(faults, "container_hosts." + name, endpoint.error());
      continue;
    }
    host.endpoint = *std::move(endpoint);
    if (texts.endpoints.size() > 1 && needs_address(host)) {
      faults.push_back(
          {.field = "host_addresses." + name,
           .what =
               "is missing: give the address at which tasks on other hosts reach '" + name + "'?"});
    }
    hosts.push_back(std::move(host));
  }
  if (faults.empty()) return hosts;
  return Error{.code = ErrorCode::kInvalid,
               .what = "the configuration of the hosts for containers is invalid",
               .advice = "docs/containers.md shows how hosts are named",
               .faults = std::move(faults)};
}

std::vector<std::filesystem::path> ways_in(const std::vector<ContainerHostOptions>& hosts) {
  std::vector<std::filesystem::path> ways;
  for (const ContainerHostOptions& host : hosts) {
    if (const auto* here = std::get_if<UnixEndpoint>(&host.endpoint)) ways.push_back(here->socket);
    if (const auto* tls = std::get_if<TlsEndpointOfHost>(&host.endpoint)) {
      ways.push_back(tls->certificates);
    }
  }
  return ways;
}

Result<std::string> owner_of(const std::filesystem::path& jobs_folder) {
  constexpr size_t kLength = 20;
  const std::filesystem::path file = jobs_folder / "container-owner";
  const auto kept = base::read_file(file);
  if (kept) {
    const bool is_one =
        kept->size() == kLength && std::all_of(kept->begin(), kept->end(), [](char letter) {
          return (letter >= 'a' && letter <= 'z') || (letter >= '2' && letter <= '7');
        });
    if (is_one) return *kept;
    return Error{.code = ErrorCode::kInvalid,
                 .what = "'" + file.string() + "' was changed by another program",
                 .advice =
                     "restore it, so that this server recognises its containers; without the "
                     "file a new identity is created",
                 .faults = {}};
  }
  if (kept.error().code != ErrorCode::kNotFound) return kept.error();
  base::SystemRandom random;
  std::string owner = base::random_name(random, kLength);
  MUSTER_CHECK(base::write_file(file, owner));
  return owner;
}

}  // namespace muster::engine
