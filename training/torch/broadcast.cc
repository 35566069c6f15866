#include "muster/training/broadcast.h"

#include <torch/torch.h>

#include <cstdint>
#include <iterator>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "describe.h"
#include "exchange.h"

namespace muster::training {

using collective::Error;
using collective::ErrorCode;
using collective::Result;
using collective::Session;
using collective::Status;
using collective::Ticket;

namespace {

constexpr const char* kName = "broadcast_parameters";

Error naming(const std::string& tensor, const Error& error) {
  Error named = error;
  named.message = "'" + tensor + "' could not be broadcast: " + error.message;
  return named;
}

// The memory into which operations in flight write, as ranges that do not overlap.
class MemoryInFlight {
 public:
  // Adds the memory of a contiguous tensor, unless a part of it is included already.
  bool add(const torch::Tensor& tensor) {
    const auto begin = reinterpret_cast<std::uintptr_t>(tensor.data_ptr());
    const std::uintptr_t end = begin + tensor.nbytes();
    if (begin == end) return true;
    const auto next = end_of_begin_.lower_bound(begin);
    if (next != end_of_begin_.end() && next->first < end) return false;
    if (next != end_of_begin_.begin() && std::prev(next)->second > begin) return false;
    end_of_begin_.emplace_hint(next, begin, end);
    return true;
  }

 private:
  std::map<std::uintptr_t, std::uintptr_t> end_of_begin_;
};

// Waits for all operations, even after one has failed, since they write into the tensors.
Status wait_for_all(Session& session, const std::vector<NamedTensor>& sent,
                    const std::vector<Ticket>& tickets) {
  Status outcome;
  for (std::size_t i = 0; i < tickets.size(); ++i) {
    const Status status = session.wait(tickets[i]);
    if (!status && outcome) outcome = naming(sent[i].name, status.error());
  }
  return outcome;
}

}  // namespace

Status broadcast_parameters(Session& session, torch::nn::Module& model, int root) {
  const torch::NoGradGuard no_grad;
  const std::vector<NamedTensor> tensors = tensors_of(model);
  if (Status agreed = agree(session, std::string(kName) + ".agree", "models", describe(tensors));
      !agreed) {
    return agreed;
  }
  std::vector<NamedTensor> sent;  // as sent: in row-major order, in host memory
  std::vector<torch::Tensor> targets;
  std::vector<Ticket> tickets;
  MemoryInFlight in_flight;
  Status outcome;
  for (const auto& [name, tensor] : tensors) {
    if (!tensor.defined()) continue;
    torch::Tensor bytes = tensor.detach().cpu().contiguous();
    // A tensor with several names, such as tied weights, is received several times, and so is the
    // part of a tensor that is registered on its own.
    if (!in_flight.add(bytes)) {
      bytes = session.rank() == root ? bytes.clone() : torch::empty_like(bytes);
      in_flight.add(bytes);
    }
    sent.push_back({name, bytes});
    targets.push_back(tensor.detach());
    const Result<Ticket> ticket =
        session.broadcast(std::string(kName) + "." + name, bytes.data_ptr(), bytes.nbytes(), root);
    if (!ticket) {
      outcome = naming(name, ticket.error());
      break;
    }
    tickets.push_back(*ticket);
  }
  const Status waited = wait_for_all(session, sent, tickets);
  if (!outcome) return outcome;
  if (!waited) return waited;
  for (std::size_t i = 0; i < sent.size(); ++i) {
    if (!targets[i].is_same(sent[i].tensor) && targets[i].data_ptr() != sent[i].tensor.data_ptr()) {
      targets[i].copy_(sent[i].tensor);
    }
  }
  return {};
}

Status broadcast_optimizer_state(Session& session, torch::optim::Optimizer& optimizer, int root) {
  const std::string name = "broadcast_optimizer_state";
  if (Status agreed = agree(session, name + ".agree", "optimizers", {describe(optimizer)});
      !agreed) {
    return agreed;
  }
  Result<std::string> bytes = std::string();
  if (session.rank() == root) bytes = bytes_of(optimizer);
  const Status packed = bytes ? Status() : Status(bytes.error());
  if (Status shared = share_status(session, name + ".packed", packed, root); !shared) return shared;
  const Result<std::string> received = broadcast_bytes(session, name, *std::move(bytes), root);
  if (!received) return received.error();
  return session.rank() == root ? Status() : restore(optimizer, *received);
}

}  // namespace muster::training
