// Checks the NCCL plug-in on hosts with a GPU for every rank:
//
//   MUSTER_COLLECTIVE_TRANSPORT=nccl [mpirun -np N] collective_nccl_check
//
// Without a launcher it is a world of one rank. Runs all collectives on host buffers, which the
// plug-in stages, and reductions on device memory. Exits with 0 if all results are right, and with
// 77 if there is no NCCL or no GPU.
#include <cstdio>
#include <vector>

#include "plugins/check.h"
#include "plugins/nccl_api.h"

namespace muster::collective {
namespace {

int report_nccl_failure(const Error& error) {
  std::fprintf(stderr, "collective_nccl_check: %s\n", error.to_string().c_str());
  return error.message.find("no NCCL") == std::string::npos ? 1 : 77;
}

// Device memory with a copy of host values, for the life of this object.
class OnDevice {
 public:
  explicit OnDevice(const std::vector<float>& values) : bytes_(values.size() * sizeof(float)) {
    ok_ = cuda_.allocate(&address_, bytes_) == 0 &&
          cuda_.copy_to_device(address_, values.data(), bytes_, nullptr) == 0;
    wait();
  }
  ~OnDevice() { cuda_.free(address_); }
  OnDevice(const OnDevice&) = delete;
  OnDevice& operator=(const OnDevice&) = delete;

  bool ok() const { return ok_; }
  void* data() const { return reinterpret_cast<void*>(address_); }  // NOLINT: a device's address

  std::vector<float> values() {
    std::vector<float> values(bytes_ / sizeof(float));
    cuda_.copy_to_host(values.data(), address_, bytes_, nullptr);
    wait();
    return values;
  }

 private:
  void wait() {
    while (cuda_.stream_query(nullptr) == nccl::kCudaNotReady) {
    }
  }

  const nccl::CudaApi& cuda_ = nccl::api().cuda;
  std::size_t bytes_;
  nccl::Address address_ = 0;
  bool ok_ = false;
};

Status wrong_on_device(const std::string& what) {
  return Error{ErrorCode::kSystem, what + " in the memory of the device is wrong"};
}

Status check_device(Communicator& world) {
  const auto size = static_cast<float>(world.size());
  const std::size_t count = 1'000'003;
  OnDevice in(std::vector<float>(count, 2));
  OnDevice out(std::vector<float>(count, 0));
  if (!in.ok() || !out.ok()) return wrong_on_device("an allocation");
  if (Status done =
          world.all_reduce(in.data(), out.data(), count, DataType::kFloat32, ReduceOp::kSum);
      !done) {
    return done;
  }
  if (out.values() != std::vector<float>(count, 2 * size)) return wrong_on_device("a sum");
  if (in.values() != std::vector<float>(count, 2)) return wrong_on_device("the input of a sum");

  const Reduction scaled(ReduceOp::kAverage, 3, 0.5);
  if (Status done = world.all_reduce(in.data(), count, DataType::kFloat32, scaled); !done) {
    return done;
  }
  if (in.values() != std::vector<float>(count, 3)) return wrong_on_device("a scaled average");

  const Tensor list[] = {{in.data(), in.data(), 1000}, {out.data(), out.data(), 7}};
  if (Status done = world.all_reduce(list, DataType::kFloat32, ReduceOp::kSum); !done) return done;
  if (in.values()[999] != 3 * size || in.values()[1000] != 3) return wrong_on_device("a list");
  if (out.values()[6] != 2 * size * size || out.values()[7] != 2 * size)
    return wrong_on_device("a list");

  const Status refused = world.all_reduce(in.data(), count, DataType::kFloat32, ReduceOp::kMax);
  if (refused || refused.error().code != ErrorCode::kBadArgument)
    return wrong_on_device("a refusal");
  return {};
}

int check_nccl() {
  const Result<Options> options = bootstrap_from_environment({.transport = "nccl"});
  if (!options) return report_nccl_failure(options.error());
  Result<Communicator> world = Communicator::connect(*options);
  if (!world) return report_nccl_failure(world.error());
  if (!check_collectives(*world)) return 1;
  // The plug-in has made a context on the device; memory is allocated in it.
  nccl::Context context = nullptr;
  nccl::Device device = 0;
  const nccl::CudaApi& cuda = nccl::api().cuda;
  cuda.device_get(&device, world->local_rank());
  cuda.retain_primary(&context, device);
  cuda.push_context(context);
  const Status checked = check_device(*world);
  if (!checked) return report_nccl_failure(checked.error());
  if (world->rank() == 0) std::printf("NCCL: all results are right on %d ranks\n", world->size());
  return 0;
}

}  // namespace
}  // namespace muster::collective

int main() {
  return muster::collective::check_nccl();
}
