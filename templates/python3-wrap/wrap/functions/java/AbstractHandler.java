package com.openfaas.model;

public abstract class AbstractHandler implements IHandler {
    @Override
    public abstract IResponse Handle(IRequest request);
}
