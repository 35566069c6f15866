// The status of a parameter server: Server::status(), Client::status().
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace muster::parameter_server {

struct WorkerStatus {
  int worker;
  std::uint64_t clock;  // its step: the step at which it joined, plus its pushes
  bool waits;           // for slower workers, in a pull or push
};

struct ServerStatus {
  std::string address;                // where it listens
  std::uint64_t tensors;              // of which it holds a part; 0 before the first declaration
  std::uint64_t bytes;                // of its parameters, without the state of its optimizer
  std::uint64_t pushes;               // applied since it started
  std::uint64_t pulls;                // answered
  std::uint64_t refused;              // pushes that were refused
  std::uint64_t bytes_in;             // of gradients, in pushes that were applied
  std::uint64_t bytes_out;            // of values, in pulls
  std::uint64_t left;                 // workers that left
  std::uint64_t lost;                 // workers that were lost
  std::vector<WorkerStatus> workers;  // present workers, by number
};

}  // namespace muster::parameter_server
