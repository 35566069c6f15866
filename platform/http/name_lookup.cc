#include "http/name_lookup.h"

#include <netdb.h>
#include <netinet/in.h>
#include <sys/eventfd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <mutex>
#include <system_error>
#include <thread>

#include "base/unique_fd.h"

namespace muster::http {

using base::Error;
using base::ErrorCode;
using base::Result;

struct NameLookup::Shared {
  std::string host;
  base::UniqueFd done{::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};
  std::mutex mutex;
  bool answered = false;
  std::vector<IpAddress> found;
  std::string fault;
};

namespace {

IpAddress address_in(const addrinfo& info) {
  IpAddress address{.is_v4 = info.ai_family == AF_INET};
  if (address.is_v4) {
    sockaddr_in four{};
    std::memcpy(&four, info.ai_addr, sizeof four);
    std::memcpy(address.bytes.data(), &four.sin_addr, sizeof four.sin_addr);
  } else {
    sockaddr_in6 six{};
    std::memcpy(&six, info.ai_addr, sizeof six);
    std::memcpy(address.bytes.data(), &six.sin6_addr, sizeof six.sin6_addr);
  }
  return address;
}

std::vector<IpAddress> addresses_in(const addrinfo* list) {
  std::vector<IpAddress> found;
  for (; list != nullptr; list = list->ai_next) {
    if (list->ai_family != AF_INET && list->ai_family != AF_INET6) continue;
    const IpAddress address = address_in(*list);
    if (std::find(found.begin(), found.end(), address) == found.end()) found.push_back(address);
  }
  return found;
}

template <class Shared>
void run_lookup(Shared& shared) {
  addrinfo wanted{};
  wanted.ai_family = AF_UNSPEC;
  wanted.ai_socktype = SOCK_STREAM;
  addrinfo* list = nullptr;
  const int error = ::getaddrinfo(shared.host.c_str(), nullptr, &wanted, &list);
  {
    const std::scoped_lock lock(shared.mutex);
    shared.answered = true;
    if (error != 0) {
      shared.fault = ::gai_strerror(error);
    } else {
      shared.found = addresses_in(list);
      ::freeaddrinfo(list);
    }
  }
  ::eventfd_write(shared.done.get(), 1);
}

}  // namespace

Result<NameLookup> NameLookup::start(const std::string& host) {
  auto shared = std::make_shared<Shared>();
  if (!shared->done) return base::system_error("cannot look up a name", errno);
  shared->host = host;
  try {
    std::thread([shared] { run_lookup(*shared); }).detach();
  } catch (const std::system_error& error) {
    return base::system_error("cannot look up a name", error.code().value());
  }
  return NameLookup(std::move(shared));
}

int NameLookup::fd() const {
  return shared_->done.get();
}

Result<std::vector<IpAddress>> NameLookup::answer() const {
  const std::scoped_lock lock(shared_->mutex);
  if (!shared_->found.empty()) return shared_->found;
  const std::string why = !shared_->answered       ? "its name server does not answer in time"
                          : shared_->fault.empty() ? "it has no IP address"
                                                   : shared_->fault;
  return Error{.code = ErrorCode::kUnavailable,
               .what = "host '" + shared_->host + "' has no address: " + why,
               .advice = "check its name"};
}

}  // namespace muster::http
