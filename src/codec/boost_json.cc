// The one place where Boost.JSON's own code is compiled: only what its basic_parser needs, with what
// sanitizers ask for (boost/json/src.hpp has a catch in it, which the guest's flags refuse).
#define BOOST_JSON_SOURCE
#include <boost/json/basic_parser.hpp>
#include <boost/json/detail/impl/default_resource.ipp>
#include <boost/json/detail/impl/except.ipp>
#include <boost/json/detail/impl/shared_resource.ipp>
#include <boost/json/detail/impl/stack.ipp>
#include <boost/json/impl/error.ipp>

#ifdef BOOST_NO_EXCEPTIONS
#include <cstdlib>

// Nothing that we call throws; Boost wants a definition.
namespace boost {
void throw_exception(const std::exception&) {
  std::abort();
}
void throw_exception(const std::exception&, const source_location&) {
  std::abort();
}
}  // namespace boost
#endif
