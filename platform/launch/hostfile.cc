#include "launch/hostfile.h"

namespace muster::launch {

namespace {

std::string lines(const std::vector<SlotHost>& hosts, const char* between) {
  std::string text;
  for (const SlotHost& host : hosts) {
    text += host.name + between + std::to_string(host.slots) + "\n";
  }
  return text;
}

}  // namespace

std::string open_mpi_hostfile(const std::vector<SlotHost>& hosts) {
  return lines(hosts, " slots=");
}

std::string hydra_hostfile(const std::vector<SlotHost>& hosts) {
  return lines(hosts, ":");
}

}  // namespace muster::launch
