"""Amortisation of a loan with a rate that is reset, extra payments, and the month in which it is paid off."""


def f(principal, rate, payment, extra):
    balance = principal
    interest_paid = 0.0
    month = 0
    history = []
    while balance > 0 and month < 600:
        monthly = rate / 12 if month < 24 else (rate + 0.01) / 12
        interest = balance * monthly
        due = payment
        if month % 12 == 11:
            due += extra
        if due <= interest:
            raise ValueError(f"the payment {due} never pays off the loan")
        principal_part = min(due - interest, balance)
        balance -= principal_part
        interest_paid += interest
        history.append(balance)
        month += 1
    average = sum(history) / len(history)
    return interest_paid + 1e-3 * average


ARGS = (30000.0, 0.045, 900.0, 500.0)
TOL = 1e-6
