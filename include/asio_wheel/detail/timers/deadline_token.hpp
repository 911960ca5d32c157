// L3 timers: tokens that add a deadline, shared by cancel_after, timeout_after and guard.
#pragma once

#include <asio_wheel/asio.hpp>
#include <asio_wheel/detail/base/any_delay.hpp>
#include <asio_wheel/detail/engine/deadline_wait.hpp>
#include <asio_wheel/detail/engine/engine.hpp>
#include <asio_wheel/detail/timers/deadline_operation.hpp>
#include <asio_wheel/detail/timers/policy_use.hpp>
#include <asio_wheel/use_wheel.hpp>
#include <asio_wheel/wheel_timer_service.hpp>

// clang-format off
#include ASIO_WHEEL_ASIO(bind_cancellation_slot.hpp)
#include ASIO_WHEEL_ASIO(system_executor.hpp)
#include ASIO_WHEEL_ASIO(use_awaitable.hpp)
// clang-format on

#include <concepts>
#include <exception>
#include <type_traits>
#include <utility>

namespace asio_wheel::detail {

/// When an operation is to be cancelled: the duration or time_point, and the wheel that keeps it. A
/// guarded operation has a `guarded_by` instead.
template <class Time>
struct time_limit {
  Time when;
  wheel_core* core = nullptr;  ///< null: of the wheel of the operation's executor

  /// Returns true if the wheel is that of the operation's executor, if this has one.
  [[nodiscard]] bool is_of_executor() const noexcept { return !core; }
  [[nodiscard]] deadline_filing filing(wheel_core& c) const noexcept { return {c, when}; }
};

/// A completion token that gives its operation a deadline.
template <class Token, class Limit, deadline_report Report>
struct deadline_token {
  Token token;
  Limit limit;
  asio::cancellation_type_t type = asio::cancellation_type::terminal;
};

/// A deadline_token with the operation's default token. Called with a token, it adds the deadline
/// to that token.
template <class Limit, deadline_report Report>
struct partial_deadline_token {
  Limit limit;
  asio::cancellation_type_t type;

  template <class Token>
  [[nodiscard]] deadline_token<std::decay_t<Token>, Limit, Report> operator()(Token&& token) const
  {
    return {std::forward<Token>(token), limit, type};
  }
};

template <class T>
inline constexpr bool is_deadline_token = false;
template <class Token, class Limit, deadline_report Report>
inline constexpr bool is_deadline_token<deadline_token<Token, Limit, Report>> = true;
template <class Limit, deadline_report Report>
inline constexpr bool is_deadline_token<partial_deadline_token<Limit, Report>> = true;

/// True for a token with a deadline in it, inside any number of adapters.
template <class T>
inline constexpr bool has_deadline = is_deadline_token<T>;
template <template <class...> class Adapter, class Token, class... Rest>
inline constexpr bool has_deadline<Adapter<Token, Rest...>> =
  is_deadline_token<Adapter<Token, Rest...>> || has_deadline<Token>;

/// A function that takes a completion token, except Asio's deferred operations: they have their own
/// operator.
template <class Operation, class Token>
concept operation_to_pipe = is_deadline_token<std::remove_cvref_t<Token>> &&
                            !asio::is_deferred<std::remove_cvref_t<Operation>>::value &&
                            std::invocable<Operation, Token>;

/// Starts an operation with a deadline, or makes a deferred operation: `operation |
/// cancel_after(5s)`.
template <class Operation, class Token>
  requires operation_to_pipe<Operation, Token>
auto operator|(Operation&& operation, Token&& token)
{
  return std::forward<Operation>(operation)(std::forward<Token>(token));
}

/// What can keep a deadline: a wheel, or a timer on a wheel.
template <class T>
concept deadline_place = requires(T& place)
{
  typename T::clock_type;
  {
    core_of(place)
    } -> std::same_as<wheel_core&>;
};

/// What a function takes after a place, in the role of a `Time`: a time point is by the place's
/// clock.
template <class Time, class Place>
using any_by = std::conditional_t<std::same_as<Time, duration>, any_delay,
                                  any_time_point<typename Place::time_point>>;

/// Converts a time to the wheel's clock, as the clocks stand now.
template <class Place>
[[nodiscard]] duration by_wheel(const wheel_core&, const any_delay& delay) noexcept
{
  return delay;
}
template <class Place>
[[nodiscard]] time_point by_wheel(const wheel_core& core,
                                  const any_time_point<typename Place::time_point>& t)
{
  using clock = typename Place::clock_type;
  if constexpr (std::same_as<clock, clock_type>) {
    return t;
  } else {
    if (t == Place::time_point::max()) return time_point::max();
    return now_plus(core, saturate(difference<typename Place::time_point>(t, clock::now())));
  }
}

/// Makes a token with a deadline. Without a token it is partial. The type of cancellation may be
/// left out.
template <deadline_report Report, class Limit>
[[nodiscard]] partial_deadline_token<Limit, Report> make_deadline(
  Limit limit, asio::cancellation_type type = asio::cancellation_type::terminal)
{
  return {limit, type};
}
template <deadline_report Report, class Limit, class Token>
[[nodiscard]] deadline_token<std::decay_t<Token>, Limit, Report> make_deadline(Limit limit,
                                                                               Token&& token)
{
  return {std::forward<Token>(token), limit};
}
template <deadline_report Report, class Limit, class Token>
[[nodiscard]] deadline_token<std::decay_t<Token>, Limit, Report> make_deadline(
  Limit limit, asio::cancellation_type type, Token&& token)
{
  return {std::forward<Token>(token), limit, type};
}

/// The type of cancel_after and its kin. Called with a time; with or without a wheel or a timer
/// before it, and a type of cancellation and a token after it. As an object, it cannot be confused
/// with Asio's functions of that name.
template <class Time, deadline_report Report>
class deadline_adapter {
  using limit = time_limit<Time>;

public:
  template <class... Rest>
  [[nodiscard]] auto operator()(any<Time> when, Rest&&... rest) const
    -> decltype(make_deadline<Report>(limit{when}, std::forward<Rest>(rest)...))
  {
    return make_deadline<Report>(limit{when}, std::forward<Rest>(rest)...);
  }
  template <deadline_place Place, class... Rest>
  [[nodiscard]] auto operator()(Place& place, any_by<Time, Place> when, Rest&&... rest) const
    -> decltype(make_deadline<Report>(limit{}, std::forward<Rest>(rest)...))
  {
    wheel_core& core = core_of(place);
    return make_deadline<Report>(limit{by_wheel<Place>(core, when), &core},
                                 std::forward<Rest>(rest)...);
  }

  template <class... Rest>
  [[nodiscard]] auto operator()(policy_state& policy, Rest&&... rest) const
    -> decltype(make_deadline<Report>(
      policy_limit{&policy, Report},
      std::forward<Rest>(rest)...)) requires(std::same_as<Time, duration>)
  {
    return make_deadline<Report>(policy_limit{&policy, Report}, std::forward<Rest>(rest)...);
  }
  template <deadline_place Place, class... Rest>
  [[nodiscard]] auto operator()(Place& place, policy_state& policy, Rest&&... rest) const
    -> decltype(make_deadline<Report>(
      policy_limit{&policy, Report},
      std::forward<Rest>(rest)...)) requires(std::same_as<Time, duration>)
  {
    return make_deadline<Report>(policy_limit{&policy, Report, &core_of(place)},
                                 std::forward<Rest>(rest)...);
  }
  template <class... Rest>
  void operator()(policy_state&, Rest&&...) const  // a policy is a delay: timeout_after, not _at
    requires(std::same_as<Time, time_point>) = delete;
};

/// An initiation's executor, if it has one.
template <class Initiation>
concept has_executor = requires(const Initiation& i)
{
  typename Initiation::executor_type;
  {i.get_executor()};
};

/// Returns the executor of an argument of an initiation: an I/O object, or a pointer to it.
/// no_executor for any other argument. Boost.Beast's initiations have no executor before Boost
/// 1.84; its WebSocket passes the owner of the stream.
template <class Argument>
[[nodiscard]] auto executor_of(Argument& argument) noexcept
{
  if constexpr (requires { use_wheel(argument.get_executor()); })
    return argument.get_executor();
  else if constexpr (requires { use_wheel(argument->get_executor()); })
    return argument->get_executor();
  else if constexpr (requires { use_wheel(argument->stream().get_executor()); })
    return argument->stream().get_executor();
  else
    return no_executor{};
}

/// Returns the executor of the first argument that has an executor.
[[nodiscard]] inline no_executor executor_of_first() noexcept
{
  return {};
}
template <class Argument, class... Rest>
[[nodiscard]] auto executor_of_first(Argument& argument, Rest&... rest) noexcept
{
  if constexpr (std::is_same_v<decltype(executor_of(argument)), no_executor>)
    return executor_of_first(rest...);
  else
    return executor_of(argument);
}

/// The wheel of the handler's own executor; throws if the handler has none.
template <class Handler>
[[nodiscard]] wheel_timer_service& wheel_of_handler(const Handler& handler)
{
  if constexpr (lacks_executor<Handler> || !has_executor_type<Handler>) {
    fail_without_wheel();
  } else {
    using associated = asio::associated_executor_t<Handler, asio::system_executor>;
    const associated& ex = asio::get_associated_executor(handler, asio::system_executor());
    // An erased handler returns what it was offered if it has no executor.
    if constexpr (erased_executor<associated>)
      if (ex.template target<asio::system_executor>()) fail_without_wheel();
    return use_wheel(ex);
  }
}

template <class Initiation>
struct initiation_base {
  Initiation initiation;
};
template <has_executor Initiation>
struct initiation_base<Initiation> {
  using executor_type = typename Initiation::executor_type;

  Initiation initiation;

  [[nodiscard]] decltype(auto) get_executor() const noexcept { return initiation.get_executor(); }
};

/// Initiates an operation with a handler that has a deadline.
template <class Initiation, class Limit, deadline_report Report, class... Signatures>
struct initiate_with_deadline : initiation_base<Initiation> {
  Limit limit;
  asio::cancellation_type_t type;

  template <class Handler, class... Args>
  void operator()(Handler&& handler, Args&&... args) &&
  {
    launch(std::move(this->initiation), limit, std::forward<Handler>(handler),
           std::forward<Args>(args)...);
  }
  template <class Handler, class... Args>
  void operator()(Handler&& handler, Args&&... args) const&
  {
    Limit copy = limit;
    launch(this->initiation, copy, std::forward<Handler>(handler), std::forward<Args>(args)...);
  }

private:
  /// The operation may complete, and destroy this object, before its initiation returns.
  template <class I, class Handler, class... Args>
  void launch(I&& i, Limit& by, Handler&& handler, Args&&... args) const
  {
    auto&& ex = executor(args...);
    using Executor = decltype(ex);
    auto where = filing(by, handler, ex);
    if constexpr (Report != deadline_report::abandoned)
      begin(std::forward<I>(i), where, std::forward<Executor>(ex), std::forward<Handler>(handler),
            std::forward<Args>(args)...);
    else if constexpr (std::is_same_v<std::decay_t<Executor>, no_executor>)
      begin(std::forward<I>(i), where, no_executor{},
            make_abandonable(std::forward<Handler>(handler), where.executor()),
            std::forward<Args>(args)...);
    else
      begin(std::forward<I>(i), where, std::forward<Executor>(ex),
            make_abandonable(std::forward<Handler>(handler), ex), std::forward<Args>(args)...);
  }

  template <class I, class Where, class Executor, class Handler, class... Args>
  void begin(I&& i, Where& where, Executor&& ex, Handler&& handler, Args&&... args) const
  {
    auto&& fallback = fallback_for<std::decay_t<Handler>>(where, std::forward<Executor>(ex));
    using operation = deadline_operation<std::decay_t<Handler>, std::decay_t<decltype(fallback)>,
                                         Where, Signatures...>;

    // A policy counts a deadline that has come, whatever is reported.
    constexpr deadline_report report =
      std::is_same_v<Limit, policy_limit> ? deadline_report::timed_out : Report;
    // Then no handler runs in another context than the wheel's.
    const bool is_at_home = lacks_executor<std::decay_t<Handler>> &&
                            !std::is_same_v<std::decay_t<Executor>, no_executor> &&
                            limit.is_of_executor();
    operation& op =
      operation::make(std::forward<Handler>(handler), std::forward<decltype(fallback)>(fallback),
                      where, type, report, is_at_home);
    const typename operation::initiation initiating{op, where};
    // Made before the initiation's parameters, since these may throw.
    deadline_handler<operation> owner(op);
    std::forward<I>(i)(std::move(owner), std::forward<Args>(args)...);
  }

  /// The operation's executor, or no_executor.
  template <class... Args>
  [[nodiscard]] decltype(auto) executor([[maybe_unused]] Args&... args) const noexcept
  {
    if constexpr (has_executor<Initiation>)
      return this->initiation.get_executor();
    else
      return executor_of_first(args...);
  }

  template <class Handler, class Executor>
  [[nodiscard]] auto filing(Limit& by, [[maybe_unused]] const Handler& handler,
                            [[maybe_unused]] const Executor& ex) const
  {
    if constexpr (std::is_same_v<Limit, guarded_by>) {
      return guard_filing{by};
    } else if constexpr (std::is_same_v<Limit, stream_limit>) {
      return by.filing();
    } else {
      wheel_core* core = by.core;
      if (!core) {
        if constexpr (std::is_same_v<Executor, no_executor>)
          core = &core_of(wheel_of_handler(handler));
        else
          core = &core_of(use_wheel(ex));
      }
      return by.filing(*core);
    }
  }

  /// The executor that the handler is offered: the operation's, or else the wheel's. no_executor if
  /// it makes no difference: see deadline_operation.
  template <class Handler, class Where, class Executor>
  [[nodiscard]] decltype(auto) fallback_for([[maybe_unused]] const Where& where,
                                            [[maybe_unused]] Executor&& ex) const noexcept
  {
    if constexpr (!std::is_same_v<std::decay_t<Executor>, no_executor>) {
      if constexpr (may_use_candidate<Handler, std::decay_t<Executor>>)
        return std::forward<Executor>(ex);
      else
        return no_executor{};
    } else if constexpr (!lacks_executor<Handler> &&
                         may_use_candidate<Handler, asio::any_io_executor>) {
      return where.executor();
    } else {
      return no_executor{};
    }
  }
};

/// The token that a partial token adds its deadline to.
template <class Executor, class... Signatures>
struct token_of_partial {
  using type = default_token_for<Executor>;
};
#if defined(BOOST_ASIO_VERSION) && BOOST_ASIO_VERSION < 102800
// With Boost 1.81 co_await takes no deferred operation with a result behind its exception_ptr.
template <class Executor, class R, class Value>
  requires std::is_same_v<default_token_for<Executor>, asio::deferred_t>
struct token_of_partial<Executor, R(std::exception_ptr, Value)> {
  using type = asio::use_awaitable_t<>;
};
#endif

/// `Token`, as constant and as movable as the `Raw` token around it.
template <class Token, class Raw>
using inner_token =
  std::conditional_t<std::is_const_v<std::remove_reference_t<Raw>>, const Token,
                     std::conditional_t<std::is_lvalue_reference_v<Raw>, Token&, Token>>;

}  // namespace asio_wheel::detail

template <class Token, class Limit, asio_wheel::detail::deadline_report Report, class... Signatures>
struct asio_wheel::asio::async_result<asio_wheel::detail::deadline_token<Token, Limit, Report>,
                                      Signatures...> : async_result<Token, Signatures...> {
  static_assert(
    Report == asio_wheel::detail::deadline_report::aborted ||
      (asio_wheel::detail::reports_error<Signatures> && ...),
    "timeout_after, abandon_after and the like need an operation that completes with an "
    "error_code or an exception_ptr first, to put timed_out there; cancel_after and "
    "cancel_at do not");

  template <class Initiation>
  using initiation = asio_wheel::detail::initiate_with_deadline<std::decay_t<Initiation>, Limit,
                                                                Report, Signatures...>;

  template <class Initiation, class Raw, class... Args>
  static auto initiate(Initiation&& i, Raw&& token, Args&&... args)
    -> decltype(async_initiate<asio_wheel::detail::inner_token<Token, Raw>, Signatures...>(
      std::declval<initiation<Initiation>>(), token.token, std::forward<Args>(args)...))
  {
    return async_initiate<asio_wheel::detail::inner_token<Token, Raw>, Signatures...>(
      initiation<Initiation>{
        {std::forward<Initiation>(i)}, std::forward<Raw>(token).limit, token.type},
      token.token, std::forward<Args>(args)...);
  }
};

template <class Limit, asio_wheel::detail::deadline_report Report, class... Signatures>
struct asio_wheel::asio::async_result<asio_wheel::detail::partial_deadline_token<Limit, Report>,
                                      Signatures...> {
  template <class Initiation>
  using full = asio_wheel::detail::deadline_token<
    typename asio_wheel::detail::token_of_partial<associated_executor_t<std::decay_t<Initiation>>,
                                                  Signatures...>::type,
    Limit, Report>;

  template <class Initiation, class Raw, class... Args>
  static auto initiate(Initiation&& i, Raw&& token, Args&&... args)
    -> decltype(async_initiate<full<Initiation>, Signatures...>(std::forward<Initiation>(i),
                                                                std::declval<full<Initiation>&>(),
                                                                std::forward<Args>(args)...))
  {
    full<Initiation> t{{}, token.limit, token.type};
    return async_initiate<full<Initiation>, Signatures...>(std::forward<Initiation>(i), t,
                                                           std::forward<Args>(args)...);
  }
};

/// Refused: the operation would listen to the slot, and never hear the deadline.
template <class Token, class Slot, class Signature>
  requires asio_wheel::detail::has_deadline<Token>
class asio_wheel::asio::async_result<asio_wheel::asio::cancellation_slot_binder<Token, Slot>,
                                     Signature> {
  static_assert(!asio_wheel::detail::has_deadline<Token>,
                "bind_cancellation_slot hides the operation from a deadline inside of it, which "
                "would never come: put it inside, as in "
                "timeout_after(5s, bind_cancellation_slot(slot, token))");
};
