// What a parameter server is doing, as it says itself: Server::status(), Client::status().
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace muster::parameter_server {

struct WorkerStatus {
  int worker;
  std::uint64_t clock;  // the step that it is in: pushes made, from where it joined
  bool waits;           // for slower workers, in a pull or push
};

struct ServerStatus {
  std::string address;      // where it listens
  std::uint64_t tensors;    // that it holds a part of; 0 before the first declaration
  std::uint64_t bytes;      // of its part of the parameters, without what its optimizer remembers
  std::uint64_t pushes;     // applied since it started
  std::uint64_t pulls;      // answered
  std::uint64_t refused;    // pushes that were refused
  std::uint64_t bytes_in;   // of gradients, in pushes that were applied
  std::uint64_t bytes_out;  // of values, in pulls
  std::uint64_t left;       // workers that said goodbye
  std::uint64_t lost;       // workers that went without a word
  std::vector<WorkerStatus> workers;  // those that are there, by number
};

}  // namespace muster::parameter_server
